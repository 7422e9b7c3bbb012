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
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
)

// started serves a daemon, and is the script that says where it is.
func started(t *testing.T) string {
	t.Helper()
	return serving(t, -1)
}

// serving is started for a daemon that has no room any more after so many requests.
func serving(t *testing.T, most int64) string {
	t.Helper()
	var asked atomic.Int64
	s, err := daemon.New(daemon.Config{Compactor: palimpsest.Config{Recall: &palimpsest.Recall{}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if most >= 0 && asked.Add(1) > most {
			noRoom(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Stop()
		server.Close()
	})
	return `echo '{"url":"` + server.URL + `","key":"k"}'`
}

// noRoom is what a daemon answers that can write nothing.
func noRoom(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `{"type":"unavailable","detail":"the disk is full"}`)
}

// absent are scripts in place of our program for all that can be wrong with a daemon.
func absent(t *testing.T) map[string]string {
	return map[string]string{
		"missing":     "",
		"fails":       "echo no >&2; exit 1",
		"says no":     "echo sorry",
		"gone":        `echo '{"url":"http://127.0.0.1:1","key":"k"}'`,
		"has no room": serving(t, 0),
	}
}

// play runs a module beside a program that is called in place of ours: a script of the
// shell, none where it is empty. What the driver writes goes to got.
func play(t *testing.T, driver, module, script string, parts int, got any) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("PALIMPSEST_REQUIRE_NODE") != "" {
			t.Fatal(err)
		}
		t.Skip("node is not installed")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if script != "" {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "palimpsest.mjs")
	if err := os.WriteFile(path, []byte(strings.Replace(module, "'palimpsest'", "'"+program+"'", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), node, driver, path, fmt.Sprint(parts)).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, got); err != nil {
		t.Fatal(err)
	}
}

// declared looks for texts in a file of a package whose folder a variable names.
func declared(t *testing.T, variable, file string, texts ...string) {
	t.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		t.Skip(variable + " names no package")
	}
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range texts {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in %s", want, file)
		}
	}
}
