//go:build unix

package ondemand

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// errLocked is wrapped by the error about a lock that another process holds.
var errLocked error = syscall.EWOULDBLOCK

// lock locks a file until it is closed or the process ends. The file stays: if it were
// removed, two processes could lock different files of the same name.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return f, nil
}

// isShared reports whether others than the owner have access.
func isShared(mode fs.FileMode) bool { return mode&0o077 != 0 }

// detachedProcess makes a process outlive the terminal.
func detachedProcess() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
