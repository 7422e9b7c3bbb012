//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestTwoSignals: a command that goes on after a signal is ended by exactly one more, where both come at once, of
// two kinds since signals of one kind that wait are one, and where it was started to ignore interrupts, as shells do
// behind "&".
func TestTwoSignals(t *testing.T) {
	for name, shell := range map[string]string{
		"at once":            `exec "$0" "$@"`,
		"interrupts ignored": `trap "" INT; exec "$0" "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "policy.yaml")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", shell, "palimpsest", "plan", "../../testdata/sessions/small.openai-chat.json", "--budget", "3000", "--policy", pipe)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command reads
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			err = cmd.Wait()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || err == nil || status.Signal() == syscall.SIGKILL || !stuck.Stop() {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

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
