//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestPipes: a command reads a named pipe, and Ctrl-C ends one to which nobody writes.
func TestPipes(t *testing.T) {
	data, err := os.ReadFile("../../testdata/sessions/small.openai-chat.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(alone(t))
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"compact", "pipe", "--budget", "8000"}, {"inspect", "pipe"}, {"check", "pipe", "--to", "openai"}, {"policy", "show", "./pipe"}, {"db", "import", "pipe", "--store", "x.db"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int)
		var errs bytes.Buffer
		go func() { ended <- Run(ctx, args, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs}) }()
		cancel()
		if status := <-ended; status != exitFailed || errs.String() != "palimpsest: interrupted\n" {
			t.Errorf("%s: exit status %d, %q", args[0], status, errs.String())
		}
	}
	defer func() { // lets those go that wait to open it
		if f, err := os.OpenFile("pipe", os.O_RDWR, 0); err == nil {
			f.Close()
		}
	}()
	// In another pipe, for those above still wait to open theirs.
	if err := syscall.Mkfifo("other", 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile("other", data, 0o600) }()
	if status, out, said := run(t, "inspect", "other"); status != exitDone || !strings.Contains(out, "read_file") {
		t.Errorf("exit status %d, %s%s", status, out, said)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestEndOfPipe: a pipe is closed at its end, and its end stays: what a second writer writes is not for this reader.
func TestEndOfPipe(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := openInput(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(path, []byte("first"), 0o600) }()
	if data, err := io.ReadAll(r); err != nil || string(data) != "first" {
		t.Errorf("%q, %v", data, err)
	}
	if err := errors.Join(<-written, r.Close()); err != nil {
		t.Error(err)
	}
	// Nobody has the pipe open any more: to write to it fails at once.
	w, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if !errors.Is(err, syscall.ENXIO) {
		t.Errorf("after the end somebody still reads the pipe: %v", err)
	}
	if err == nil {
		_, err = io.WriteString(w, "second")
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := r.Read(make([]byte, 10)); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d bytes, %v", n, err)
	}
}

// TestPipeOfSession: a hook and a status line that are given a pipe as the session's file do not wait for it.
func TestPipeOfSession(t *testing.T) {
	t.Chdir(alone(t))
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"hook", "claude-code", "PreCompact"}, {"hook", "claude-code", "SessionStart"}, {"statusline"}} {
		var out, errs bytes.Buffer
		Run(t.Context(), args, Streams{In: strings.NewReader(`{"session_id":"s","transcript_path":"pipe","source":"compact"}`), Out: &out, Err: &errs})
		if args[0] == "hook" && (out.Len() > 0 || !strings.Contains(errs.String(), "pipe is no file of a session")) {
			t.Errorf("%s: %s%s", args, &out, &errs)
		}
	}
}

// TestPipeOfSettings: doctor does not wait for a pipe in place of an agent's settings.
func TestPipeOfSettings(t *testing.T) {
	home := agentsHome(t)
	if err := os.Remove(home + "/.claude/settings.json"); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(home+"/.claude/settings.json", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, errs := run(t, "doctor"); !strings.Contains(out, "it deletes a transcript 30 days after its last use") {
		t.Errorf("%s%s", out, errs)
	}
}
