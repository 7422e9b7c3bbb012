package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// keepAnswers is how long answers stay in the cache.
const keepAnswers = 30 * 24 * time.Hour

// leftover is the age at which a file that no row names is removed. Before that another
// process may still be writing its row.
const leftover = time.Hour

// Vacuum removes cached answers that are older than 30 days and files that a crash has
// left, and returns the space of deleted rows to the system.
func (db *DB) Vacuum(ctx context.Context) (err error) {
	defer db.fail(&err, "Vacuum", "")
	if err := exec(ctx, db.write, []any{db.now().Add(-keepAnswers).UnixNano()}, `DELETE FROM summaries WHERE created < $1`); err != nil {
		return err
	}
	left, err := db.leftovers(ctx)
	for _, f := range left {
		// By the clock of the file system, not by db.now.
		if err == nil && time.Since(f.made) > leftover {
			err = db.removeBody(f.name)
		}
	}
	if err != nil {
		return err
	}
	return exec(ctx, db.write, nil, db.dialect.Tidy...)
}

// Bytes returns the size of the database, without artifacts that are in files.
func (db *DB) Bytes(ctx context.Context) (n int64, err error) {
	defer db.fail(&err, "Bytes", "")
	err = db.read.QueryRowContext(ctx, db.dialect.Size).Scan(&n)
	return n, err
}

// Leftovers lists the artifact files that no row names, also those whose rows other
// processes are just writing.
func (db *DB) Leftovers(ctx context.Context) (names []string, err error) {
	defer db.fail(&err, "Leftovers", "")
	left, err := db.leftovers(ctx)
	for _, f := range left {
		names = append(names, f.name)
	}
	return names, err
}

type file struct {
	name string
	made time.Time
}

func (db *DB) leftovers(ctx context.Context) (left []file, err error) {
	bodies := db.dialect.Bodies
	if bodies == nil {
		return nil, nil
	}
	// Files before rows: a file whose row comes later is not old.
	err = fs.WalkDir(bodies.Root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			left = append(left, file{name, info.ModTime()})
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was just removed
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	named, err := column[string](ctx, db.read, `SELECT body FROM artifacts WHERE body <> ''`)
	slices.Sort(named)
	return slices.DeleteFunc(left, func(f file) bool {
		_, found := slices.BinarySearch(named, f.name)
		return found && !durable.IsTemp(path.Base(f.name))
	}), err
}
