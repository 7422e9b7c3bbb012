package integrations_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
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
	return refusing(t, noRoom, func(*http.Request) bool { return most >= 0 && asked.Add(1) > most })
}

// refusing is started for a daemon that refuses some requests.
func refusing(t *testing.T, refuse http.HandlerFunc, which func(*http.Request) bool) string {
	t.Helper()
	return at(serve(t, refuse, which))
}

// serve is the address of a daemon that refuses some requests.
func serve(t *testing.T, refuse http.HandlerFunc, which func(*http.Request) bool) string {
	t.Helper()
	s, err := daemon.New(daemon.Config{Compactor: palimpsest.Config{Recall: &palimpsest.Recall{}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if which(r) {
			refuse(w, r)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Stop()
		server.Close()
	})
	return server.URL
}

// at is the script that says where a daemon is.
func at(url string) string { return `echo '{"url":"` + url + `","key":"k"}'` }

// noRoom is what a daemon answers that can write nothing.
func noRoom(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprint(w, `{"type":"unavailable","detail":"the disk is full"}`)
}

// absent are scripts in place of our program for what can be wrong with a daemon: all of
// it in a long run, else every fourth, by turn, so that each is tried with one of the four
// plugins that any Node and Python runs.
func absent(t *testing.T, turn int) map[string]string {
	some := map[string]string{}
	all := everyAbsence(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if corpus.Long() || i%4 == turn {
			some[name] = all[name]
		}
	}
	return some
}

func everyAbsence(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"missing":        "",
		"fails":          "echo no >&2; exit 1",
		"says no":        "echo sorry",
		"gone":           `echo '{"url":"http://127.0.0.1:1","key":"k"}'`,
		"has no room":    serving(t, 0),
		"talks nonsense": answering(t, func(w http.ResponseWriter) { fmt.Fprint(w, "<html>It works!</html>") }),
		"says nothing":   answering(t, func(w http.ResponseWriter) { fmt.Fprint(w, "null") }),
		"is older":       answering(t, func(w http.ResponseWriter) { fmt.Fprint(w, `{"version":3,"prompt":{"messages":[{"role":"user"}]}}`) }),
		// It has threads, but not yet what is asked of them.
		"lacks a route": refusing(t, http.NotFound, func(r *http.Request) bool { return r.URL.Path != "/v1/threads" }),
		"lacks a method": answering(t, func(w http.ResponseWriter) {
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		}),
		"edits nonsense": answering(t, func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"version":3,"edits":[null,{"message_id":7,"insert_before":"?"}]}`)
		}),
		"leaves nothing": leavingNothing(t),
		"is killed": answering(t, func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"version":`)
			panic(http.ErrAbortHandler)
		}),
	}
}

// why are words of the line that says what is wrong.
var why = map[string]string{"lacks a route": "the daemon answers 404", "lacks a method": "the daemon answers 405", "has no room": "the disk is full", "leaves nothing": "the daemon leaves nothing"}

// answering is the script for a daemon that answers everything in one way.
func answering(t *testing.T, answer func(http.ResponseWriter)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
	t.Cleanup(server.Close)
	return at(server.URL)
}

// leavingNothing is the script for a daemon that takes out all messages.
func leavingNothing(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var step struct{ Messages []struct{ ID string } }
		if err := json.NewDecoder(r.Body).Decode(&step); err != nil || path.Base(r.URL.Path) != "prepare" {
			noRoom(w, r)
			return
		}
		type edit struct {
			ID   string `json:"message_id"`
			Omit bool   `json:"omit"`
		}
		edits := []edit{}
		for _, m := range step.Messages {
			edits = append(edits, edit{ID: m.ID, Omit: true})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"version": 1, "edits": edits})
	}))
	t.Cleanup(server.Close)
	return at(server.URL)
}

// interpreter is the path of a program that runs scripts. A test that needs a missing one is
// skipped, unless the environment demands it.
func interpreter(t *testing.T, language string) string {
	t.Helper()
	path, err := exec.LookPath(language)
	if err != nil {
		if os.Getenv("PALIMPSEST_REQUIRE_INTERPRETERS") != "" {
			t.Fatal(err)
		}
		t.Skip(language + " is not installed")
	}
	return path
}

// play runs a plugin's files beside a program that is called in place of ours: a script of
// the shell, none where it is empty. What the driver of its name writes goes to got.
func play(t *testing.T, name string, files map[string]string, entry, script string, parts int, got any) {
	t.Helper()
	driver, language := name, "python3"
	if path.Ext(name) == "" {
		driver, language = name+".mjs", "node"
	}
	runs := interpreter(t, language)
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if script != "" {
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files[path.Join(path.Dir(entry), "package.json")] = `{"type":"module"}` // as the agents take it
	for place, text := range files {
		at := filepath.Join(dir, filepath.FromSlash(place))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, "PROGRAM = 'palimpsest'", "PROGRAM = '"+program+"'", 1)
		text = strings.Replace(text, "STARTING = 8", "STARTING = 600", 1) // on a busy machine a script takes its time
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), runs, filepath.Join("testdata", driver), filepath.Join(dir, filepath.FromSlash(entry)), fmt.Sprint(parts))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &errs)
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
