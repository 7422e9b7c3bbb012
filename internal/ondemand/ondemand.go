// Package ondemand finds and starts the daemon that a user's programs share: the first
// program that needs the daemon starts it.
//
// A daemon holds a lock beside its socket while it listens, and the system releases it
// when the process ends, even by a crash. So a socket without a lock is a leftover and can
// be replaced. A program that starts a daemon holds a second lock meanwhile, so that of many
// programs at once only one starts it.
package ondemand

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// API is the version of a daemon's interface. Programs of different releases with the same
// version share a daemon.
const API = 1

// Path describes the daemon, StopPath stops it. They exist at the socket only.
const (
	Path     = "/daemon"
	StopPath = "/daemon/stop"
)

// maxPath limits the path of a socket, in bytes: systems accept 104 or 108.
const maxPath = 100

const (
	probeTimeout = 5 * time.Second
	// startTimeout limits starting and stopping; opening a large store takes seconds.
	startTimeout = 30 * time.Second
	// maxLog is the size at which a log is rotated, in bytes.
	maxLog = 4 << 20
)

// ErrNoDaemon is wrapped by errors about a socket at which nothing answers.
var ErrNoDaemon = errors.New("no daemon answers")

// ErrAPI is wrapped by errors about a daemon with another version of API.
var ErrAPI = errors.New("the daemon is of another release")

// Running is a running daemon.
type Running struct {
	Socket string `json:"socket"`        // the path of its socket
	URL    string `json:"url,omitempty"` // the address of its port; empty if it has none
	// Key is for requests to the URL; requests to the socket need none. It is valid until
	// the daemon ends, and is a secret.
	Key     string `json:"key,omitempty"`
	Version string `json:"version"`
	API     int    `json:"api"`
	PID     int    `json:"pid"`
}

// Socket returns the path of the user's socket, in $XDG_RUNTIME_DIR or else below the data
// directory, which others cannot enter. If it is too long, the error says what to set.
func Socket(dataDir string) (string, error) {
	path := filepath.Join(dataDir, "run", "daemon.sock")
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		path = filepath.Join(dir, "palimpsest", "daemon.sock")
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("%s: %w: set XDG_RUNTIME_DIR to a folder with a shorter name", path, errTooLong)
	}
	return path, nil
}

var errTooLong = fmt.Errorf("the path of a socket takes at most %d bytes", maxPath)

// Client returns an HTTP client that sends all requests to a socket. It keeps no connections.
func Client(socket string) *http.Client {
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
	}}
}

// Probe asks the daemon at a socket to describe itself. The error wraps ErrNoDaemon if nothing
// listens, or ErrAPI.
func Probe(ctx context.Context, socket string) (Running, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var r Running
	body, err := send(ctx, socket, http.MethodGet, Path)
	if err == nil {
		err = json.Unmarshal(body, &r)
	}
	if err != nil {
		return Running{}, fmt.Errorf("%s: %w", socket, err)
	}
	if r.API != API {
		return r, fmt.Errorf("%s: %w: it is version %s with API %d, and this program asks for API %d; `palimpsest daemon stop` ends it", socket, ErrAPI, r.Version, r.API, API)
	}
	return r, nil
}

func send(ctx context.Context, socket, method, path string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := Client(socket).Do(q)
	if err != nil {
		return nil, asNoDaemon(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("this is not a daemon of palimpsest, or an older one: %s", answer.Status)
	}
	return body, err
}

// asNoDaemon wraps ErrNoDaemon if the error says that nothing listens or that the daemon has just
// ended.
func asNoDaemon(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrNoDaemon, op.Err)
	}
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, ended) {
			return fmt.Errorf("%w: %w", ErrNoDaemon, err)
		}
	}
	return err
}

// Start says how to start a daemon.
type Start struct {
	Socket  string   // where it will listen
	Command []string // the program with its arguments; it is started in the socket's folder
	Env     []string // its environment; nil is that of this process
	Log     string   // the file for its output; if it cannot be written, output is lost
}

// Ensure returns the daemon at a socket, and starts one if there is none. It is safe to call
// from many programs at once. The daemon outlives the caller.
func Ensure(ctx context.Context, s Start) (Running, error) {
	r, err := Probe(ctx, s.Socket)
	if !errors.Is(err, ErrNoDaemon) {
		return r, err
	}
	if err := ensurePrivateDir(filepath.Dir(s.Socket)); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	lockFile, err := Lock(ctx, s.Socket+".start")
	if err != nil {
		return r, fmt.Errorf("waiting for another program that starts the daemon: %w", err)
	}
	defer lockFile.Close()
	if r, err = Probe(ctx, s.Socket); !errors.Is(err, ErrNoDaemon) {
		return r, err // another program has started it
	}
	return s.start(ctx)
}

func (s *Start) start(ctx context.Context) (r Running, err error) {
	log := openLog(s.Log)
	defer log.Close() // also if it is nil
	var at int64
	if info, err := log.Stat(); err == nil {
		at = info.Size()
	}
	// Not CommandContext: the daemon outlives ctx.
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.SysProcAttr = detachedProcess()
	cmd.Dir, cmd.Env = filepath.Dir(s.Socket), s.Env
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("starting the daemon: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log holds the error
		close(ended)
	}()
	err = retryUntil(ctx, func() (bool, error) {
		if r, err = Probe(ctx, s.Socket); !errors.Is(err, ErrNoDaemon) {
			return true, err
		}
		select {
		case <-ended:
			return true, fmt.Errorf("the daemon failed to start: %s", s.lastOutput(at))
		default:
			return false, err
		}
	})
	return r, err
}

// Detach starts a program that outlives this one and has no part in its terminal.
func Detach(command []string, env ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = detachedProcess()
	cmd.Env = append(os.Environ(), env...)
	return cmd.Start()
}

// lastOutput returns the last line of the log after an offset.
func (s *Start) lastOutput(at int64) string {
	f, err := os.Open(s.Log)
	if err != nil {
		return "the reason is unknown, as its log cannot be written: " + err.Error()
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, at, 1<<20))
	if err != nil {
		return err.Error()
	}
	last := ""
	for line := range strings.Lines(string(bytes.TrimSpace(data))) {
		if !strings.HasPrefix(line, "see: ") {
			last = strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("%s (%s)", strings.TrimPrefix(last, "palimpsest: "), s.Log)
}

// openLog opens the log for appending; nil if it cannot be written. It first rotates a large
// log.
func openLog(name string) *os.File {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		_ = os.Rename(name, name+".1") // if that fails, it just grows
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil
	}
	return f
}

// Stop stops the daemon at a socket, waits for its end, and returns it. The error wraps
// ErrNoDaemon if there is none.
func Stop(ctx context.Context, socket string) (Running, error) {
	r, err := Probe(ctx, socket)
	if err != nil && !errors.Is(err, ErrAPI) {
		return r, err
	}
	if _, err := send(ctx, socket, http.MethodPost, StopPath); err != nil {
		return r, fmt.Errorf("%s: %w", socket, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return r, retryUntil(ctx, func() (bool, error) {
		now, err := Probe(ctx, socket)
		return errors.Is(err, ErrNoDaemon) || now.PID != r.PID && err == nil, nil
	})
}

// retryUntil calls try until it is done, with growing pauses. The error is that of the last try,
// joined with that of ctx if it ends.
func retryUntil(ctx context.Context, try func() (done bool, err error)) error {
	wait := 2 * time.Millisecond
	for {
		done, err := try()
		if done {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
			wait = min(2*wait, 50*time.Millisecond)
		}
	}
}

// Lock locks a file, which it makes, until that is closed or the process ends. It waits for another process that has
// the lock until ctx ends.
func Lock(ctx context.Context, name string) (lockFile *os.File, err error) {
	err = retryUntil(ctx, func() (done bool, err error) {
		if lockFile, err = lock(name); err != nil {
			return !errors.Is(err, errLocked), err
		}
		mine, err := lockFile.Stat()
		if now, gone := os.Stat(name); err == nil && (gone != nil || !os.SameFile(mine, now)) { // who had it removed it
			return false, lockFile.Close()
		}
		return true, err
	})
	return lockFile, err
}

// ensurePrivateDir creates a folder that only its owner can enter. An existing one must be
// private.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); isShared(mode) {
		return fmt.Errorf("others may enter %s (mode %o), and who reaches the socket may do everything: chmod 700, or name a folder that does not exist yet: %w", dir, mode, fs.ErrPermission)
	}
	return nil
}
