//go:build !unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/palimpsest-ai/palimpsest/store"
)

// readOnlyFS is the error of a file system that is mounted read-only.
var readOnlyFS = fs.ErrPermission

// explainFile wraps an error of the file system in the sentinel that says what it means.
func explainFile(err error) error {
	if errors.Is(err, fs.ErrPermission) && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	return err
}
