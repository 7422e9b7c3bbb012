package ondemand

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ErrSocketTaken is wrapped by the error about a socket at which another daemon answers.
var ErrSocketTaken = errors.New("another daemon has the socket")

// exitTimeout is how long a process may take to end after it has closed its socket: a killed
// process first frees its memory.
const exitTimeout = 10 * time.Second

// Listen opens a socket that only its owner can use, in a folder that only its owner can
// enter; it creates the folder. It replaces the socket of a daemon that was killed, but nothing
// else. Closing the listener removes the socket.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	// The daemon tells its path to programs in other folders.
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if len(path) > maxPath {
		return nil, fmt.Errorf("%s: %w", path, errTooLong)
	}
	if err := ensurePrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	lockFile, err := acquireSocketLock(ctx, path)
	if err != nil {
		return nil, err
	}
	l, err := openSocket(ctx, path)
	if err != nil {
		lockFile.Close()
		return nil, err
	}
	return &listener{Listener: l, lockFile: lockFile}, nil
}

// acquireSocketLock takes the lock of a socket. It waits for a daemon that is just ending.
func acquireSocketLock(ctx context.Context, path string) (lockFile *os.File, err error) {
	limited, cancel := context.WithTimeout(ctx, exitTimeout)
	defer cancel()
	ended := retryUntil(limited, func() (bool, error) {
		if lockFile, err = lock(path + ".lock"); !errors.Is(err, errLocked) {
			return true, nil
		}
		err = socketTaken(ctx, path)
		return !errors.Is(err, ErrNoDaemon), nil
	})
	return lockFile, errors.Join(err, ended)
}

// openSocket opens the socket. The caller holds the lock.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s exists and is not a socket: name another, or remove it", path)
	default:
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, socketTaken(ctx, path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// socketTaken is the error about a socket that another daemon uses.
func socketTaken(ctx context.Context, path string) error {
	r, err := Probe(ctx, path)
	if r.PID == 0 {
		return fmt.Errorf("%w, and does not say which: %w", ErrSocketTaken, err)
	}
	return fmt.Errorf("%w: version %s, process %d, answers at %s; `palimpsest daemon stop` ends it", ErrSocketTaken, r.Version, r.PID, path)
}

// listener releases the lock after it has removed the socket.
type listener struct {
	net.Listener
	lockFile *os.File
}

// Close implements net.Listener.
func (l *listener) Close() error { return errors.Join(l.Listener.Close(), l.lockFile.Close()) }
