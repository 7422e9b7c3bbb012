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

// TestTwoSignals: a command that goes on after a signal is ended by exactly one more, also where both come
// at once, and where it was started to ignore interrupts, as shells do behind "&".
func TestTwoSignals(t *testing.T) {
	for name, test := range map[string]struct {
		sent   [2]os.Signal
		shell  string
		atOnce bool
	}{
		"both interrupts":      {[2]os.Signal{os.Interrupt, os.Interrupt}, `exec "$0" "$@"`, false},
		"of two kinds at once": {[2]os.Signal{os.Interrupt, syscall.SIGTERM}, `exec "$0" "$@"`, true},
		"interrupts ignored":   {[2]os.Signal{os.Interrupt, os.Interrupt}, `trap "" INT; exec "$0" "$@"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "policy.yaml")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("sh", "-c", test.shell, "palimpsest", "plan", "../../testdata/sessions/small.openai-chat.json", "--budget", "3000", "--policy", pipe)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stuck := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command reads
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			for n, s := range test.sent {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				if n == 0 && !test.atOnce {
					time.Sleep(200 * time.Millisecond) // signals of one kind that wait are one
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
