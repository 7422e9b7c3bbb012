package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
)

const (
	newFile   = 0o600 // the mode of files and folders that are made
	newFolder = 0o700
	// maxSettings limits a file that is changed, in bytes.
	maxSettings = 16 << 20
)

// read reads a file, nil if it is not there, and says where it really is. It is an error if that is
// behind a link out of the user's home and of a folder root, or if it is no file of settings.
func read(path, root string) (real string, text []byte, err error) {
	if real, err = realPath(path, root); err != nil {
		return "", nil, err
	}
	info, err := os.Stat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return real, nil, nil
	case err != nil:
		return "", nil, err
	case !info.Mode().IsRegular() || info.Size() > maxSettings:
		return "", nil, fmt.Errorf("%s is not a regular file of at most %d MB", path, maxSettings>>20)
	}
	text, err = os.ReadFile(real)
	return real, append([]byte{}, text...), err
}

// realPath is where a file really is, which may be behind links; of a file that is not there, of
// the nearest folder that is. The error wraps ErrOthers if that is neither in the user's home
// nor in root.
func realPath(path, root string) (string, error) {
	at, rest := path, ""
	real, err := filepath.EvalSymlinks(at)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at {
		if _, dangling := os.Lstat(at); dangling == nil {
			return "", fmt.Errorf("%w: %s is a link to nowhere", ErrOthers, at)
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
		real, err = filepath.EvalSymlinks(at)
	}
	if err != nil {
		return "", err
	}
	real = filepath.Join(real, rest)
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	for _, folder := range []string{home, root} {
		// The folder that a variable names may lie anywhere; what it is a link to may not.
		if info, err := os.Lstat(folder); err == nil && folder == root && info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		if at, err := filepath.EvalSymlinks(folder); err == nil {
			folder = at
		}
		if rel, err := filepath.Rel(folder, real); err == nil && filepath.IsLocal(rel) {
			return real, nil
		}
	}
	return "", fmt.Errorf("%w: %s is a link out of your home, to %s: change that file by hand", ErrOthers, path, real)
}

// missing are the folders above a file that are not there, the outermost first.
func missing(path string) (folders []string) {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		if _, err := os.Lstat(folder); err == nil || filepath.Dir(folder) == folder {
			slices.Reverse(folders)
			return folders
		}
		folders = append(folders, folder)
	}
}

// write puts a text in place of a file at once, with the file's mode, and makes its folders.
func write(path string, text []byte) error {
	mode := fs.FileMode(newFile)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), newFolder); err != nil {
		return err
	}
	return durable.Replace(path, mode, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// loadJSON reads a file of ours into a value, which stays as it is if there is none.
func loadJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// saveJSON writes a value to a file of ours, or removes that if the value is empty.
func saveJSON(path string, value any, empty bool) error {
	if empty {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return write(path, append(text, '\n'))
}

// lockTimeout is how long one process waits for another one that changes the same data directory.
const lockTimeout = 10 * time.Second

// alone calls f while no other process does for a data directory; made are the folders that it made for that.
func alone(ctx context.Context, data string, f func(made []string) error) error {
	name := filepath.Join(data, "install.lock")
	made := missing(name)
	defer removeFolders(made)
	if err := os.MkdirAll(data, newFolder); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	lock, err := ondemand.Lock(ctx, name)
	cancel()
	if err != nil {
		return fmt.Errorf("waiting for another palimpsest that changes %s: %w", data, err)
	}
	err = f(made)
	os.Remove(name)
	lock.Close()
	os.Remove(name) // where an open file cannot be removed
	return err
}

// removeFolders removes those of the folders that are empty, the innermost first.
func removeFolders(made []string) {
	for _, folder := range slices.Backward(made) {
		_ = os.Remove(folder) // one that is not empty has become another's
	}
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// firstThere returns the first of the names, which are joined by "|", that is a file in a
// folder, else the first.
func firstThere(folder, names string) string {
	all := strings.Split(filepath.FromSlash(names), "|")
	return all[max(0, slices.IndexFunc(all, func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	}))]
}
