//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// TestSecondSignal: a command that a signal does not end, as it waits for a policy on a pipe, is
// ended by the next one.
func TestSecondSignal(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "policy.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("palimpsest", "plan", "../../testdata/sessions/small.openai-chat.json", "--budget", "3000", "--policy", pipe)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command reads
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if err == nil {
				t.Error("it ended well")
			}
			return
		default:
			_ = cmd.Process.Signal(os.Interrupt)
			runtime.Gosched()
		}
	}
}
