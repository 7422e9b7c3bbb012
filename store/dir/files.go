package dir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"syscall"
)

// What is kept here is as private as the conversations it comes from.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// tempPrefix begins the names of files that are not finished.
const tempPrefix = ".tmp-"

// files does what must survive a crash. Paths are slash-separated and relative
// to the root, which they cannot leave.
type files struct{ root *os.Root }

// replace puts a file in place of the one that may be there.
func (f files) replace(name string, data []byte) error {
	temp, err := f.temp(name, data)
	if err != nil {
		return err
	}
	if err := f.root.Rename(temp, name); err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	return f.syncDir(path.Dir(name))
}

// create is replace for a name that must be free; else the error wraps
// fs.ErrExist.
func (f files) create(name string, data []byte) error {
	temp, err := f.temp(name, data)
	if err != nil {
		return err
	}
	err = f.root.Link(temp, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		if removed := f.root.Remove(temp); err == nil {
			err = removed
		}
		return errors.Join(err, f.syncDir(path.Dir(name)))
	}
	// A file system without links: an empty file claims the name.
	claim, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return errors.Join(err, f.root.Remove(temp))
	}
	if err := errors.Join(claim.Close(), f.root.Rename(temp, name)); err != nil {
		return err
	}
	return f.syncDir(path.Dir(name))
}

// temp writes a whole, synced file beside where it will stand.
func (f files) temp(name string, data []byte) (temp string, err error) {
	if err := f.mkdir(path.Dir(name)); err != nil {
		return "", err
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	temp = path.Join(path.Dir(name), tempPrefix+hex.EncodeToString(random[:]))
	file, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, f.root.Remove(temp))
	}
	return temp, nil
}

// append adds lines to a file with one write. Where a crash has left half a
// line at the end, the lines begin behind a newline, so that only the half is
// lost.
func (f files) append(name string, lines []byte) error {
	if err := f.mkdir(path.Dir(name)); err != nil {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, fileMode)
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		var last [1]byte
		if _, err := file.ReadAt(last[:], info.Size()-1); err != nil || last[0] != '\n' {
			lines = append([]byte{'\n'}, lines...)
		}
	}
	_, err = file.Write(lines)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return f.syncDir(path.Dir(name))
}

// mkdir makes a directory and those above it, and syncs what it has made.
func (f files) mkdir(name string) error {
	if _, err := f.root.Stat(name); err == nil || name == "." {
		return nil
	}
	if err := f.mkdir(path.Dir(name)); err != nil {
		return err
	}
	if err := f.root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.syncDir(path.Dir(name))
}

// syncDir makes names in a directory last. Windows cannot do it and does not
// need it; some file systems refuse it.
func (f files) syncDir(name string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := f.root.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// list returns the entries of a directory sorted by name; none when it is not
// there.
func (f files) list(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(f.root.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

func isTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }
