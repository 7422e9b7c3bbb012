//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// user is one whose daemon is tried: a home and a runtime folder of its own.
type user struct {
	data, runtime string
	dir           string   // where commands are run
	env           []string // besides
}

func newUser(t *testing.T) user {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // a test's own has too long a name
	if err != nil {
		t.Fatal(err)
	}
	u := user{data: filepath.Join(dir, "data"), runtime: filepath.Join(dir, "run")}
	if err := os.Mkdir(u.runtime, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := u.palimpsest("daemon", "stop"); err != nil {
			t.Errorf("%s, %v", out, err)
		}
		os.RemoveAll(dir)
	})
	return u
}

func (u user) palimpsest(args ...string) (string, error) {
	cmd := exec.Command("palimpsest", args...)
	cmd.Dir, cmd.Env = u.dir, append(append(os.Environ(), "XDG_DATA_HOME="+u.data, "XDG_CONFIG_HOME="+u.data, "XDG_RUNTIME_DIR="+u.runtime), u.env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return string(out), err
}

// daemon is the user's daemon.
func (u user) daemon(t *testing.T, args ...string) ondemand.Running {
	t.Helper()
	out, err := u.palimpsest(append([]string{"daemon"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var r ondemand.Running
	if err := json.Unmarshal([]byte(out), &r); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%q: %v", out, err)
	}
	return r
}

// ended waits until a socket is gone. To ask there would be a use of the daemon.
func ended(t *testing.T, socket string) {
	t.Helper()
	for {
		if _, err := os.Stat(socket); errors.Is(err, fs.ErrNotExist) {
			return
		}
		runtime.Gosched()
	}
}

// TestDaemon: ten who ask at once get one daemon; it is killed, and the next who asks
// gets another one with the same threads; each goes on after who asked for it.
func TestDaemon(t *testing.T) {
	u := newUser(t)
	var all sync.WaitGroup
	lines := make([]string, 10)
	for i := range lines {
		all.Go(func() {
			out, err := u.palimpsest("daemon")
			if lines[i] = out; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, line := range lines[1:] {
		if line != lines[0] {
			t.Errorf("two daemons:\n%s%s", lines[0], line)
		}
	}
	first := u.daemon(t)
	thread := func(r ondemand.Running, c *http.Client, address, key string) error {
		client, err := api.NewClient(address, &api.Options{HTTP: c, Key: key})
		if err != nil {
			return err
		}
		_, err = client.Thread(t.Context(), "t")
		return err
	}
	socket := ondemand.Client(first.Socket)
	client, err := api.NewClient("http://localhost", &api.Options{HTTP: socket})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateThread(t.Context(), api.NewThread{ID: "t"}); err != nil {
		t.Fatal(err)
	}
	port := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if err := thread(first, port, first.URL, ""); !api.IsKind(err, api.Unauthorized) {
		t.Errorf("at the port without the key: %v", err)
	}
	if err := thread(first, port, first.URL, first.Key); err != nil {
		t.Errorf("at the port with the key: %v", err)
	}
	if _, err := os.Stat(filepath.Join(u.data, "palimpsest", "palimpsest.db")); err != nil {
		t.Errorf("the store of the command's is not the daemon's: %v", err)
	}
	// What a daemon may say is not in its log.
	if log, err := os.ReadFile(filepath.Join(u.data, "palimpsest", "daemon.log")); err != nil || bytes.Contains(log, []byte(first.Key)) {
		t.Errorf("the log: %v\n%s", err, log)
	}

	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := u.daemon(t)
	if second.PID == first.PID || second.Key == first.Key {
		t.Errorf("after it was killed: %+v", second)
	}
	if err := thread(second, socket, "http://localhost", ""); err != nil {
		t.Errorf("after it was killed: %v", err)
	}
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "palimpsest", "serve", "--socket", second.Socket, "--listen", "", "--store", "memory:").CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("process %d, answers at", second.PID)) {
		t.Errorf("a second one at the socket: %v: %s", err, out)
	}

	if out, err := u.palimpsest("daemon", "stop"); err != nil || out != fmt.Sprintf("stopped the daemon, process %d\n", second.PID) {
		t.Errorf("%q, %v", out, err)
	}
	ended(t, second.Socket)
	if out, err := u.palimpsest("daemon", "stop"); err != nil || !strings.HasPrefix(out, "no daemon answers at ") {
		t.Errorf("stopped twice: %q, %v", out, err)
	}
	if out, err := u.palimpsest("daemon", "--idle", "-1s"); err == nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	if corpus.Long() {
		ended(t, u.daemon(t, "--idle", "3s").Socket)
	}
	u.daemon(t, "--idle", "0") // never; newUser stops it
}

// TestDaemonPaths: relative paths in the settings mean what they mean where the daemon is asked
// for, and in the file of settings where that is; never the folder of the socket.
func TestDaemonPaths(t *testing.T) {
	u := newUser(t)
	u.dir = t.TempDir()
	u.env = []string{"PALIMPSEST_CONFIG=conf/c.yaml", "PALIMPSEST_MASTER_KEY_FILE=master.key", "PALIMPSEST_STORE=agents.db"}
	if err := os.Mkdir(filepath.Join(u.dir, "conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	master, err := u.palimpsest("keys", "master")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"conf/c.yaml": "policy: mine.yaml\n", "conf/mine.yaml": "base: ladder\n", "master.key": master} {
		if err := os.WriteFile(filepath.Join(u.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u.daemon(t)
	if _, err := os.Stat(filepath.Join(u.dir, "agents.db")); err != nil {
		t.Error(err)
	}
	// The commands read the same store.
	if out, err := u.palimpsest("threads"); err != nil {
		t.Errorf("%s, %v", out, err)
	}
}

// TestDaemonCannot: where no daemon can be, it is said why.
func TestDaemonCannot(t *testing.T) {
	u := newUser(t)
	if err := os.WriteFile(u.data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := u.palimpsest("daemon"); err == nil || out != "" || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("no data directory: %q, %v", out, err)
	}
	u = newUser(t)
	if err := os.MkdirAll(filepath.Join(u.data, "palimpsest"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.data, "palimpsest", "config.yaml"), []byte("listn: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := u.palimpsest("daemon"); err == nil || out != "" || !strings.Contains(err.Error(), `unknown setting "listn"`) {
		t.Errorf("wrong settings: %q, %v", out, err)
	}
	if os.Getuid() == 0 {
		return // who may write everywhere has no store that is read-only
	}
	u = newUser(t)
	u.daemon(t)
	if _, err := u.palimpsest("daemon", "stop"); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(u.data, "palimpsest")
	if err := errors.Join(os.Chmod(filepath.Join(data, "palimpsest.db"), 0o400), os.Chmod(data, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(data, 0o700)
	r := u.daemon(t)
	client, err := api.NewClient("http://localhost", &api.Options{HTTP: ondemand.Client(r.Socket)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateThread(t.Context(), api.NewThread{ID: "t"}); !api.IsKind(err, api.Unavailable) {
		t.Errorf("a store that is read-only: %v", err)
	}
}
