package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// TestTextOnTerminal: on a terminal, text of a conversation steers nothing, and a file or a pipe gets it as it is.
func TestTextOnTerminal(t *testing.T) {
	terminal, tty := openTerminal(t)
	t.Chdir(alone(t))
	text := "red \x1b[31m \u202eback\u202c end\ttab"
	putFile(t, "f.json", fmt.Sprintf(`{"messages":[{"role":"user","content":%q}]}`, strings.ReplaceAll(text, "\x1b", "ESC")), 0o600)
	data, err := os.ReadFile("f.json")
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.ReplaceAll(data, []byte("ESC"), []byte(`\u001b`))
	putFile(t, "f.json", string(data), 0o600)
	args := []string{"compact", "f.json", "--budget", "100000", "--to", "text"}
	if status, out, errs := run(t, args...); status != exitDone || !strings.Contains(out, text) {
		t.Fatalf("status %d: %q %s", status, out, errs)
	}
	var errs bytes.Buffer
	if status := Run(context.Background(), args, Streams{In: strings.NewReader(""), Out: tty, Err: &errs}); status != exitDone {
		t.Fatalf("status %d: %s", status, &errs)
	}
	shown := make([]byte, 1<<12)
	n, err := terminal.Read(shown)
	if out := string(shown[:n]); err != nil || !strings.Contains(out, "red ␛[31m �back� end\ttab") || strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("%q %v", out, err)
	}
}

// openTerminal opens a new terminal: what is written to tty is read from the other end.
func openTerminal(t *testing.T) (terminal, tty *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be opened: ", err)
	}
	t.Cleanup(func() { terminal.Close() })
	var number, locked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skip("no terminal can be opened: ", err)
	}
	t.Cleanup(func() { tty.Close() })
	return terminal, tty
}
