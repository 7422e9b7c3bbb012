package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// write puts data into a file, whole or not at all: an existing file stays as it
// is until the new one is complete. "" and "-" are standard output.
func write(path string, data []byte, stdout io.Writer) (err error) {
	if path == "" || path == "-" {
		_, err := stdout.Write(data)
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, data, 0o644) // a device or a pipe
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s, it stays as it was: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write %s, it stays as it was: %w", path, errors.Join(err, f.Close(), os.Remove(f.Name())))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// terminal reports whether w is a terminal, so that colours are welcome.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
