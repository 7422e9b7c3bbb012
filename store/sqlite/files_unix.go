//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/palimpsest-ai/palimpsest/store"
)

// readOnlyFS is the error of a file system that is mounted read-only.
var readOnlyFS error = syscall.EROFS

// explainFile wraps an error of the file system in the sentinel that says what it means.
func explainFile(err error) error {
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	return err
}
