package ondemand

import (
	"io/fs"
	"os"
	"syscall"
)

// errLocked is ERROR_SHARING_VIOLATION: another process has the file open.
var errLocked error = syscall.Errno(32)

// lock opens a file exclusively until it is closed or the process ends.
func lock(name string) (*os.File, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), name), nil
}

// isShared is always false: folders of a user are private, and the mode does not say.
func isShared(fs.FileMode) bool { return false }

// detachedProcess makes a process outlive the console.
func detachedProcess() *syscall.SysProcAttr {
	const detachedFlag = 0x8
	return &syscall.SysProcAttr{HideWindow: true, CreationFlags: detachedFlag | syscall.CREATE_NEW_PROCESS_GROUP}
}
