//go:build !unix

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/palimpsest-ai/palimpsest/store"
)

// readOnlyFS is the error of a file system that is mounted for reading.
var readOnlyFS = fs.ErrPermission

// explainFile says what an error of the file system means.
func explainFile(err error) error {
	if errors.Is(err, fs.ErrPermission) && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	return err
}
