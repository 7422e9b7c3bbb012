package integrations_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/integrations"
)

// TestDaemonOfManyThreads: a conversation of several threads is asked for at once. They wait
// for one start of the daemon, and what could not be searched is said. A thread that is not
// there holds nothing.
func TestDaemonOfManyThreads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := strings.Split(r.URL.Path, "/")[3]; name {
		case "none":
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"detail":"there is no such thread"}`)
		case "full":
			noRoom(w, r)
		default:
			fmt.Fprintf(w, `{"parts":[{"outcome":"success","content":[{"type":"text","text":"from %s"}]}]}`, name)
		}
	}))
	defer server.Close()
	starts := filepath.Join(t.TempDir(), "starts")
	var got map[string]string
	play(t, "daemon", integrations.Plugin("pi"), "extensions/palimpsest/daemon.js", "echo x >>'"+starts+"'; "+at(server.URL), 0, &got)
	for ids, want := range map[string]string{
		"a b c":     "from a\n\nfrom b\n\nfrom c",
		"a none":    "from a",
		"a full b":  "from a\n\nfrom b\n\n[palimpsest: 1 of the 3 parts of this conversation could not be searched: the disk is full]",
		"none":      "error: there is no such thread",
		"none full": "error: the disk is full",
	} {
		if got[ids] != want {
			t.Errorf("%s: %q, and not %q", ids, got[ids], want)
		}
	}
	if started, err := os.ReadFile(starts); err != nil || string(started) != "x\n" {
		t.Errorf("%v: the daemon was started so often: %q", err, started)
	}
}
