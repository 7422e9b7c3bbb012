package cli

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
)

// one is an append of one message.
func one(text string) api.Append {
	return api.Append{Messages: []neutral.Message{{Role: "user", Parts: []neutral.Part{{Type: neutral.TextPart, Text: text}}}}}
}

// served starts a daemon over a store, and calls with its client.
func served(t *testing.T, do func(c *api.Client, ready func() string), args ...string) {
	t.Helper()
	address, stop := running(t, args...)
	transport := &http.Transport{}
	do(client(t, address, ""), func() string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", address+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || (answer.StatusCode == 200) != (string(body) == "ok\n") {
			t.Errorf("%d %s, %v", answer.StatusCode, body, err)
		}
		return string(body)
	})
	transport.CloseIdleConnections()
	if status, log := stop(); status != exitDone || t.Failed() {
		t.Errorf("status %d:\n%s", status, log)
	}
}

// filledFile makes a store with a thread of one message.
func filledFile(t *testing.T, file string, args ...string) {
	t.Helper()
	served(t, func(c *api.Client, ready func() string) {
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Append(t.Context(), "t", 0, one("one")); err != nil {
			t.Fatal(err)
		}
		if body := ready(); body != "ok\n" {
			t.Error(body)
		}
	}, append(args, "--store", file)...)
}

// gone is what a daemon says whose file was removed: what it has not read before it may
// not find.
const gone = "removed or replaced"

// unfit asks a daemon that cannot write: it says why, serves what it has, and
// acknowledges no write.
func unfit(t *testing.T, c *api.Client, ready func() string, says string) {
	t.Helper()
	if body := ready(); !strings.Contains(body, says) {
		t.Errorf("want %q: %s", says, body)
	}
	if log, err := c.Log(t.Context(), "t", "", 0); (err != nil || len(log.Items) != 1) && !(says == gone && api.IsKind(err, api.Unavailable)) {
		t.Errorf("reading: %+v, %v", log, err)
	}
	if _, err := c.Append(t.Context(), "t", 1, one("two")); !api.IsKind(err, api.Unavailable) || !strings.Contains(err.Error(), says) {
		t.Errorf("writing: %v", err)
	}
	if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "new"}); !api.IsKind(err, api.Unavailable) {
		t.Errorf("creating: %v", err)
	}
	if _, err := c.Prepare(t.Context(), "t", api.Any, api.Step{Messages: one("three").Messages, Window: 10_000}); !api.IsKind(err, api.Unavailable) {
		t.Errorf("a step: %v", err)
	}
}

// TestServeWithoutMaster: over a store that has data keys a daemon without the master
// key is not ready and writes nothing.
func TestServeWithoutMaster(t *testing.T) {
	dir := alone(t)
	file, master := filepath.Join(dir, "p.db"), filepath.Join(dir, "master.key")
	if err := os.WriteFile(master, []byte(said(t, "keys", "master")), 0o644); err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	if status := Run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--store", file, "--master-key", master}, Streams{In: strings.NewReader(""), Out: io.Discard, Err: &report}); status != exitFailed || !strings.Contains(report.String(), "chmod 600") {
		t.Fatalf("a master key that everybody may read: status %d: %s", status, report.String())
	}
	if err := os.Chmod(master, 0o600); err != nil {
		t.Fatal(err)
	}
	filledFile(t, file, "--master-key", master)
	served(t, func(c *api.Client, ready func() string) {
		if body := ready(); !strings.Contains(body, "master key") {
			t.Error(body)
		}
		if _, err := c.Append(t.Context(), "t", 1, one("CANARY")); !api.IsKind(err, api.Unavailable) || !strings.Contains(err.Error(), "master key") {
			t.Errorf("%v", err)
		}
		if _, err := c.CreateThread(t.Context(), api.NewThread{ID: "CANARY"}); !api.IsKind(err, api.Unavailable) {
			t.Errorf("%v", err)
		}
	}, "--store", file)
	for _, name := range []string{file, file + "-wal"} {
		if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), "CANARY") {
			t.Errorf("%s holds clear text", name)
		}
	}
}

// TestServeGone: the file is removed under a daemon: it is not ready any more, and
// acknowledges nothing that the next one would not find.
func TestServeGone(t *testing.T) {
	file := filepath.Join(alone(t), "p.db")
	filledFile(t, file)
	served(t, func(c *api.Client, ready func() string) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		unfit(t, c, ready, gone)
	}, "--store", file)
}

// TestServeFull: a daemon starts where nothing more can be written, serves what there
// is and says what is wrong; the next one, with room, goes on.
func TestServeFull(t *testing.T) {
	if os.Getenv("PALIMPSEST_TEST_LIMITED") == "" {
		// The limit is one of the process, which writes files of its own.
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestServeFull$")
		cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_LIMITED=1")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "--- SKIP") {
			t.Skipf("%s", out)
		}
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	file := filepath.Join(alone(t), "p.db")
	filledFile(t, file)
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: was.Max}); err != nil {
		t.Skipf("the size of files cannot be limited here: %v", err)
	}
	room := func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
			t.Error(err)
		}
	}
	defer room()
	served(t, func(c *api.Client, ready func() string) { unfit(t, c, ready, "no room") }, "--store", file)
	room()
	served(t, func(c *api.Client, ready func() string) {
		if a, err := c.Append(t.Context(), "t", 1, one("two")); err != nil || a.Version != 2 || ready() != "ok\n" {
			t.Errorf("with room again: %+v, %v", a, err)
		}
	}, "--store", file)
}

// TestServeReadOnly: the same on a file system that is locked.
func TestServeReadOnly(t *testing.T) {
	folder := filepath.Join(alone(t), "small")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer syscall.Unmount(folder, syscall.MNT_DETACH)
	file := filepath.Join(folder, "p.db")
	filledFile(t, file)
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=4m"); err != nil {
		t.Fatal(err)
	}
	served(t, func(c *api.Client, ready func() string) { unfit(t, c, ready, "may not write") }, "--store", file)
}
