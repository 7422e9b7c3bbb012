//go:build unix

package ondemand_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
)

// folder is a folder that leaves room for the name of a socket, and only its owner
// enters.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// answers serves what a daemon says of itself.
func answers(t *testing.T, l net.Listener, body string) {
	t.Helper()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != ondemand.Path {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, body)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
}

// TestListen: nobody else reaches the socket, one that is in use is not taken, one
// that was left is replaced, and nothing else is.
func TestListen(t *testing.T) {
	dir := folder(t)
	path := filepath.Join(dir, "new", "d.sock")
	l, err := ondemand.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{filepath.Dir(path): 0o700, path: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode().Perm(), err, want)
		}
	}
	answers(t, l, `{"version":"1.2.3","api":1,"pid":4711}`)
	if _, err := ondemand.Listen(t.Context(), path); !errors.Is(err, ondemand.ErrSocketTaken) || !strings.Contains(err.Error(), "version 1.2.3, process 4711") {
		t.Errorf("a socket in use: %v", err)
	}
	if r, err := ondemand.Probe(t.Context(), path); err != nil || r.PID != 4711 {
		t.Errorf("after that: %+v, %v", r, err)
	}

	// What a killed process leaves: the socket, and no lock.
	left := filepath.Join(dir, "new", "left.sock")
	dead, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	if _, err := ondemand.Probe(t.Context(), left); !errors.Is(err, ondemand.ErrNoDaemon) {
		t.Errorf("one that was left: %v", err)
	}
	again, err := ondemand.Listen(t.Context(), left)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a closed socket is there: %v", err)
	}

	// Something that knows no lock.
	other := filepath.Join(dir, "new", "other.sock")
	l, err = net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	answers(t, l, "hello")
	if _, err := ondemand.Listen(t.Context(), other); !errors.Is(err, ondemand.ErrSocketTaken) {
		t.Errorf("the socket of another program: %v", err)
	}

	file := filepath.Join(dir, "new", "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ondemand.Listen(t.Context(), file); err == nil || !strings.Contains(err.Error(), "is not a socket") {
		t.Errorf("a file: %v", err)
	}
	if data, err := os.ReadFile(file); string(data) != "kept" {
		t.Errorf("the file: %q, %v", data, err)
	}

	wide := filepath.Join(dir, "wide")
	if err := os.Mkdir(wide, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := ondemand.Listen(t.Context(), filepath.Join(wide, "d.sock")); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a folder that others enter: %v", err)
	}
	if _, err := ondemand.Listen(t.Context(), filepath.Join(dir, strings.Repeat("long", 25))); err == nil || !strings.Contains(err.Error(), "at most 100 bytes") {
		t.Errorf("a long path: %v", err)
	}
}

// TestAsk: what answers is told apart, and no daemon is started beside one that
// answers.
func TestAsk(t *testing.T) {
	for _, tt := range []struct {
		body, says string
		is         error
	}{
		{`{"version":"9.0","api":7,"pid":1}`, "it is version 9.0 with API 7, and this program asks for API 1; `palimpsest daemon stop`", ondemand.ErrAPI},
		{`{}`, "API 0", ondemand.ErrAPI},
		{`<html>`, "invalid character", nil},
	} {
		path := filepath.Join(folder(t), "d.sock")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		answers(t, l, tt.body)
		start := ondemand.Start{Socket: path, Command: []string{filepath.Join(t.TempDir(), "none")}}
		for _, err := range []error{
			func() error { _, err := ondemand.Probe(t.Context(), path); return err }(),
			func() error { _, err := ondemand.Ensure(t.Context(), start); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) || errors.Is(err, ondemand.ErrNoDaemon) {
				t.Errorf("%s: %v", tt.body, err)
			}
		}
	}
	none := filepath.Join(folder(t), "d.sock")
	if _, err := ondemand.Stop(t.Context(), none); !errors.Is(err, ondemand.ErrNoDaemon) {
		t.Errorf("stopping none: %v", err)
	}
}

// TestEnsureFails: why a daemon does not start is said, with what it wrote last.
func TestEnsureFails(t *testing.T) {
	dir := folder(t)
	for name, tt := range map[string]struct {
		command []string
		log     string
		says    string
	}{
		"a program that is not there": {[]string{filepath.Join(dir, "none")}, filepath.Join(dir, "log"), "no such file"},
		"one that ends":               {[]string{"sh", "-c", "echo first; echo 'palimpsest: the store is full' >&2; echo 'see: palimpsest serve --help' >&2; exit 1"}, filepath.Join(dir, "log"), "failed to start: the store is full (" + dir},
		"without a log":               {[]string{"sh", "-c", "exit 1"}, filepath.Join(dir, "nowhere", "\x00", "log"), "its log cannot be written"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ondemand.Ensure(t.Context(), ondemand.Start{Socket: filepath.Join(dir, "d.sock"), Command: tt.command, Log: tt.log})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
		})
	}
	// A caller that gives up says so.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ondemand.Ensure(ctx, ondemand.Start{Socket: filepath.Join(dir, "d.sock"), Command: []string{"sleep", "0"}, Log: filepath.Join(dir, "log")}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestSocket: the socket is in the folder of the session where there is one, and a
// path that no socket can have is an error that says what to do.
func TestSocket(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got, err := ondemand.Socket("/data"); err != nil || got != "/data/run/daemon.sock" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := ondemand.Socket("/" + strings.Repeat("a", 90)); err == nil || !strings.Contains(err.Error(), "set XDG_RUNTIME_DIR") {
		t.Errorf("%v", err)
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	if got, err := ondemand.Socket("/" + strings.Repeat("a", 90)); err != nil || got != "/run/user/1/palimpsest/daemon.sock" {
		t.Errorf("%s, %v", got, err)
	}
}
