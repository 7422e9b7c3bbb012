package integrations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/integrations"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// played is what testdata/opencode.mjs writes.
type played struct {
	Steps []struct {
		Own, Auto, Same bool
		Messages        []struct {
			ID, Role, Text string
			Reasoning      bool
			Results        []string
		}
	}
	Recalled string
	Logged   []string
}

// TestOpencode plays a conversation of 30 steps through a window of 20,000 tokens to the
// module, beside a real daemon.
func TestOpencode(t *testing.T) {
	got := playOpencode(t, started(t), 30)
	if len(got.Logged) > 0 || len(got.Steps) != 30 {
		t.Fatalf("%d steps, logged %q", len(got.Steps), got.Logged)
	}
	for i, s := range got.Steps {
		size := 0
		for n, m := range s.Messages {
			size += len(m.Text)
			for _, r := range m.Results {
				size += len(r)
			}
			if m.Role == "assistant" && strings.HasPrefix(m.ID, "msg_0") && (len(m.Results) != 1 || !m.Reasoning) {
				t.Errorf("step %d, message %d: its call or its reasoning is gone: %+v", i+1, n, m)
			}
		}
		if !s.Own || s.Auto {
			t.Errorf("step %d: opencode's messages are unchanged: %t, its own compaction is on: %t", i+1, s.Own, s.Auto)
		}
		if i < 3 && !s.Same {
			t.Errorf("step %d: it was edited without a plan", i+1)
		}
		if size > 20_000*4 {
			t.Errorf("step %d: %d bytes are left", i+1, size)
		}
	}
	last := got.Steps[len(got.Steps)-1]
	if last.Same || !strings.Contains(last.Messages[len(last.Messages)-1].Results[0], "exit 1") {
		t.Errorf("at last: %+v", last)
	}
	var all strings.Builder
	for _, m := range last.Messages {
		all.WriteString(m.Text)
	}
	if !strings.Contains(all.String(), "Never change a file") {
		t.Errorf("the task is gone: %.2000s", all.String())
	}
	if !strings.Contains(got.Recalled, "the code is K7919") {
		t.Errorf("recall gave %.300s", got.Recalled)
	}
}

// TestOpencodeWithoutDaemon: whatever is wrong with the daemon, opencode's messages and its
// own compaction are as they were, and one line says why.
func TestOpencodeWithoutDaemon(t *testing.T) {
	for name, program := range map[string]string{
		"missing":     "",
		"fails":       "echo no >&2; exit 1",
		"says no":     "echo sorry",
		"gone":        `echo '{"url":"http://127.0.0.1:1","key":"k"}'`,
		"not allowed": `echo '{"url":"` + refusing(t) + `","key":"k"}'`,
	} {
		t.Run(name, func(t *testing.T) {
			got := playOpencode(t, program, 3)
			for i, s := range got.Steps {
				if !s.Same || !s.Own || !s.Auto {
					t.Errorf("step %d: %+v", i+1, s)
				}
			}
			if len(got.Logged) != 3 || !strings.HasPrefix(got.Recalled, "error: ") {
				t.Errorf("logged %q, recall gave %q", got.Logged, got.Recalled)
			}
		})
	}
}

// started serves a daemon, and is the script that says where it is.
func started(t *testing.T) string {
	t.Helper()
	s, err := daemon.New(daemon.Config{Compactor: palimpsest.Config{Recall: &palimpsest.Recall{}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stop()
		server.Close()
	})
	return `echo '{"url":"` + server.URL + `","key":"k"}'`
}

// refusing is the address of a daemon that has no room for anything.
func refusing(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"type":"unavailable","detail":"the disk is full"}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// playOpencode runs the module beside a program that is called in place of ours: a script
// of the shell, none where it is empty.
func playOpencode(t *testing.T, script string, parts int) played {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if script != "" {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	module := filepath.Join(dir, "palimpsest.mjs")
	text := strings.Replace(integrations.Opencode, "'palimpsest'", "'"+program+"'", 1)
	if err := os.WriteFile(module, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, "testdata/opencode.mjs", module, fmt.Sprint(parts)).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got played
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got
}
