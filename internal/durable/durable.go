// Package durable writes files that survive a crash: whole or not at all, under
// names that cannot lead out of a directory. What is kept with it is private:
// only its owner may read it.
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
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

// The modes of what is made: nobody but the owner reads it.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// tempPrefix begins the names of files that are not finished.
const tempPrefix = ".tmp-"

// Dir does what must survive a crash. Paths are slash-separated and relative to
// the root, which they cannot leave. It is safe for concurrent use, also by
// several processes. Make one with Open.
type Dir struct {
	Root *os.Root
	// synced has the directories of which it is known that their names last: who
	// finds one does not know whether who made it came to sync it.
	synced *sync.Map
}

// Open opens a directory, which it makes with all above it. Close its Root when
// it is no longer needed.
func Open(path string) (Dir, error) {
	if err := MkdirAll(path); err != nil {
		return Dir{}, err
	}
	root, err := os.OpenRoot(path)
	return Dir{Root: root, synced: &sync.Map{}}, err
}

// MkdirAll makes a directory and all above it that are missing, private, so that
// they last.
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

// Create writes a file under a name that must be free; else the error wraps
// fs.ErrExist.
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
	// A file system without links: an empty file claims the name.
	claim, err := d.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return errors.Join(err, d.Root.Remove(temp))
	}
	if err := errors.Join(claim.Close(), d.Root.Rename(temp, name)); err != nil {
		return err
	}
	return d.syncDir(path.Dir(name))
}

// writeTemp writes a whole, synced file beside where it will stand.
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

// mkdir makes a directory and those above it, and sees to it that they last.
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

// syncDir makes names in a directory last.
func (d Dir) syncDir(name string) error {
	folder, err := d.Root.Open(name)
	if err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes names in a directory last, and closes it. Windows cannot do it
// and does not need it; some file systems refuse it.
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

// IsTemp reports whether the name, without its directory, is that of a file
// that is not finished: still being written, or left by a crash.
func IsTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }
