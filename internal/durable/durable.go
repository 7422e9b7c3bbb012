// Package durable writes files that survive a crash: whole or not at all, in one directory, readable for
// their owner only.
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"github.com/palimpsest-ai/palimpsest/internal/crash"
)

// The modes of new folders and files.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// tempPrefix begins the names of unfinished files.
const tempPrefix = ".tmp-"

// Dir writes files into a directory. Paths are slash-separated and relative to the root, which they
// cannot leave. It is safe for concurrent use, also by several processes. Make one with Open.
type Dir struct {
	Root *os.Root
	// synced has the directories whose names are known to be durable: the process that created one
	// may have crashed before it synced the parent.
	synced *sync.Map
}

// Open opens a directory, and creates it and its parents if necessary. The caller must close Root.
func Open(path string) (Dir, error) {
	if err := MkdirAll(path); err != nil {
		return Dir{}, err
	}
	root, err := os.OpenRoot(path)
	return Dir{Root: root, synced: &sync.Map{}}, err
}

// MkdirAll creates a directory and its parents, durably and for their owner only.
func MkdirAll(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(path)
	if above == path {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrNotExist}
	}
	if err := MkdirAll(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil {
		if info, statErr := os.Stat(path); statErr != nil || !info.IsDir() {
			return err
		}
	}
	folder, err := os.Open(above)
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

// Create writes a new file. If the name is taken, the error wraps fs.ErrExist.
func (d Dir) Create(name string, data []byte) error {
	temp, err := d.writeTemp(name, data)
	if err != nil {
		return err
	}
	crash.Point("file: written to create")
	err = d.Root.Link(temp, name)
	crash.Point("file: created")
	if err == nil || errors.Is(err, fs.ErrExist) {
		if removed := d.Root.Remove(temp); err == nil {
			err = removed
		}
		return errors.Join(err, d.syncDir(path.Dir(name)))
	}
	// The file system has no links: an empty file reserves the name.
	claim, err := d.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return errors.Join(err, d.Root.Remove(temp))
	}
	if err := errors.Join(claim.Close(), d.Root.Rename(temp, name)); err != nil {
		return err
	}
	return d.syncDir(path.Dir(name))
}

// writeTemp writes and syncs a temporary file in the folder of the final one.
func (d Dir) writeTemp(name string, data []byte) (temp string, err error) {
	if err := d.mkdir(path.Dir(name)); err != nil {
		return "", err
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	temp = path.Join(path.Dir(name), tempPrefix+hex.EncodeToString(random[:]))
	file, err := d.Root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	crash.Point("file: not synced")
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, d.Root.Remove(temp))
	}
	return temp, nil
}

// mkdir creates a directory and its parents durably.
func (d Dir) mkdir(name string) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return nil
	}
	_, lasting := d.synced.Load(name)
	if _, err := d.Root.Stat(name); err == nil && lasting {
		return nil
	}
	if err := d.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := d.Root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.syncDir(path.Dir(name)); err != nil {
		return err
	}
	d.synced.Store(name, true)
	return nil
}

// syncDir makes the names in a directory durable.
func (d Dir) syncDir(name string) error {
	folder, err := d.Root.Open(name)
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the names in a directory durable, and closes it. Windows cannot and need not do that,
// and some file systems do not support it.
func syncFolder(folder *os.File) error {
	if runtime.GOOS == "windows" {
		return folder.Close()
	}
	err := folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// IsTemp reports whether the name, without its directory, is that of an unfinished file: one that is
// being written, or was left by a crash.
func IsTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

// Beside makes an empty file in the folder of another one, to be renamed to it.
func Beside(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part")
}

// Replace puts what fill writes in place of a file, or of none, with a mode. A file that is there stays as it
// was until the new one is complete. It does not wait until the name of a new file would survive a crash.
func Replace(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	temp, err := Beside(path)
	if err != nil {
		return err
	}
	if err = errors.Join(fill(temp), temp.Chmod(mode), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp.Name()))
	}
	return err
}
