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

// exitTimeout is how long a process that listens no more may take to end: one that was
// killed gives its memory back first.
const exitTimeout = 10 * time.Second

// Listen opens a socket that only its owner reaches, in a folder that only the owner
// enters, which is made where it is not there. A socket that a killed daemon left is
// replaced, anything else is not. Closing it takes it away.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	// The daemon says it to who asks from anywhere.
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

// acquireSocketLock takes the lock of a socket. One that ends at this moment is waited for.
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

// openSocket opens the socket of who holds the lock.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("%s is there and is no socket: name another, or remove it", path)
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

// socketTaken is the error about a socket that another daemon has.
func socketTaken(ctx context.Context, path string) error {
	r, err := Probe(ctx, path)
	if r.PID == 0 {
		return fmt.Errorf("%w, and does not say who it is: %w", ErrSocketTaken, err)
	}
	return fmt.Errorf("%w: version %s, process %d, answers at %s; `palimpsest daemon stop` ends it", ErrSocketTaken, r.Version, r.PID, path)
}

// listener gives the lock back after the socket is gone.
type listener struct {
	net.Listener
	lockFile *os.File
}

// Close implements net.Listener.
func (l *listener) Close() error { return errors.Join(l.Listener.Close(), l.lockFile.Close()) }
