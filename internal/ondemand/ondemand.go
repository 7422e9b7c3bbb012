// Package ondemand is the daemon that a user's programs share on a machine: where its
// socket is, who answers there, and how it is started by whoever needs it first.
//
// A daemon holds a lock beside its socket as long as it listens, which the system gives
// free when its process ends, however that is. So a socket without the lock is what a
// killed daemon left, and is replaced. Whoever starts a daemon holds a second lock while
// it does, so that of many callers at once one starts it.
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

// API is the version of what a daemon answers. Programs of different releases share a
// daemon as long as it is the same.
const API = 1

// Path is where a daemon says at its socket what it is, and StopPath where it is told
// to stop. At its port there is neither.
const (
	Path     = "/daemon"
	StopPath = "/daemon/stop"
)

// maxPath is how long the path of a socket may be, in bytes: systems take 104 or 108.
const maxPath = 100

const (
	// probeTimeout is how long a daemon may take to say what it is.
	probeTimeout = 5 * time.Second
	// startTimeout is how long it may take to start; a large store is opened in seconds.
	startTimeout = 30 * time.Second
	// maxLog is the size from which the log of the daemons before is put aside, in bytes.
	maxLog = 4 << 20
)

// ErrNoDaemon is wrapped by errors about a socket at which nothing answers.
var ErrNoDaemon = errors.New("no daemon answers")

// ErrAPI is wrapped by errors about a daemon of a release that answers otherwise than
// this one asks.
var ErrAPI = errors.New("the daemon is of another release")

// Running is a daemon as it tells of itself.
type Running struct {
	// Socket is the path of its socket, and URL the address of its port, empty where it
	// has none.
	Socket string `json:"socket"`
	URL    string `json:"url,omitempty"`
	// Key is what requests to the port show; those to the socket need none. It holds
	// until the daemon ends, and is a secret.
	Key     string `json:"key,omitempty"`
	Version string `json:"version"`
	API     int    `json:"api"`
	PID     int    `json:"pid"`
}

// Socket is the path of the user's socket, in $XDG_RUNTIME_DIR or else below the data
// directory, neither of which others can enter. The error says what to set where
// it is too long for a socket.
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

// Client returns an HTTP client whose requests, for any host, go to a socket. It keeps
// no connection open.
func Client(socket string) *http.Client {
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) },
	}}
}

// Probe asks who answers at a socket. The error wraps ErrNoDaemon where nothing listens, and
// else says what is wrong with who does.
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
		err = fmt.Errorf("what answers is no daemon of this program, or an older one: %s", answer.Status)
	}
	return body, err
}

// asNoDaemon makes ErrNoDaemon of an error that says nothing listens, or who did has just ended.
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

// Start says how a daemon is started.
type Start struct {
	// Socket is where it is to answer.
	Socket string
	// Command is the program with its arguments.
	Command []string
	// Log is the file that its output is added to. Where it cannot be written the
	// output is lost.
	Log string
}

// Ensure returns the daemon that answers at a socket, and starts it where none does. Of
// any number of callers at once one starts it. It goes on when the caller ends.
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
	var lockFile *os.File
	err = retryUntil(ctx, func() (done bool, err error) {
		lockFile, err = lock(s.Socket + ".start")
		return !errors.Is(err, errLocked), err
	})
	if err != nil {
		return r, fmt.Errorf("waiting for another program that starts the daemon: %w", err)
	}
	defer lockFile.Close()
	if r, err = Probe(ctx, s.Socket); !errors.Is(err, ErrNoDaemon) {
		return r, err // another caller was first
	}
	return s.start(ctx)
}

func (s *Start) start(ctx context.Context) (r Running, err error) {
	log := openLog(s.Log)
	defer log.Close() // nil is no file
	var at int64
	if info, err := log.Stat(); err == nil {
		at = info.Size()
	}
	// It outlives ctx.
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.SysProcAttr = detachedProcess()
	cmd.Dir = filepath.Dir(s.Socket)
	if log != nil {
		cmd.Stdout, cmd.Stderr = log, log
	}
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("starting the daemon: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why
		close(ended)
	}()
	err = retryUntil(ctx, func() (bool, error) {
		if r, err = Probe(ctx, s.Socket); !errors.Is(err, ErrNoDaemon) {
			return true, err
		}
		select {
		case <-ended:
			return true, fmt.Errorf("the daemon ended as it started: %s", s.lastOutput(at))
		default:
			return false, err
		}
	})
	return r, err
}

// lastOutput is what a daemon wrote last, of what stands in the log behind a place.
func (s *Start) lastOutput(at int64) string {
	f, err := os.Open(s.Log)
	if err != nil {
		return "nothing is known of it, for its log cannot be written: " + err.Error()
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

// openLog opens the log for what comes, nil where it cannot be written. One that
// has grown large is put aside, over the one before.
func openLog(name string) *os.File {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil
	}
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		_ = os.Rename(name, name+".1") // else it goes on growing
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil
	}
	return f
}

// Stop ends the daemon at a socket, and returns it when nothing answers there any more.
// The error wraps ErrNoDaemon where nothing did before.
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

// retryUntil tries until it is done, at first soon and then less often. The error is that of
// the last try, and at the end of ctx both.
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

// ensurePrivateDir makes a folder that only its owner enters. One that is there already must be so.
func ensurePrivateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); isShared(mode) {
		return fmt.Errorf("%s may be entered by others (mode %o), and who reaches the socket may do everything: chmod 700, or name a folder that is not there yet: %w", dir, mode, fs.ErrPermission)
	}
	return nil
}
