package sqlstore

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
)

// keepAnswers is how long an answer stays in the cache.
const keepAnswers = 30 * 24 * time.Hour

// leftover is how old a file that no row names must be to be removed: another
// process may just be writing its row.
const leftover = time.Hour

// Vacuum removes cached answers of more than 30 days and files that a crash
// has left, and gives back the room of what was deleted.
func (db *DB) Vacuum(ctx context.Context) error {
	_, err := db.write.ExecContext(ctx, `DELETE FROM summaries WHERE created < $1`, db.now().Add(-keepAnswers).UnixNano())
	if err == nil {
		err = db.removeLeftovers(ctx)
	}
	for _, statement := range db.dialect.Tidy {
		if err == nil {
			_, err = db.write.ExecContext(ctx, statement)
		}
	}
	return db.fail(err, "Vacuum", "")
}

// Bytes is how much room the database takes, in bytes, without large contents of
// artifacts that are in files.
func (db *DB) Bytes(ctx context.Context) (n int64, err error) {
	err = db.read.QueryRowContext(ctx, db.dialect.Size).Scan(&n)
	return n, db.fail(err, "Bytes", "")
}

// Leftovers lists the files beside the database that no row names, whatever
// their age: those of other processes that are writing now are among them.
func (db *DB) Leftovers(ctx context.Context) ([]string, error) {
	left, err := db.leftovers(ctx)
	names := make([]string, len(left))
	for n := range left {
		names[n] = left[n].name
	}
	return names, db.fail(err, "Leftovers", "")
}

type file struct {
	name string
	made time.Time
}

func (db *DB) leftovers(ctx context.Context) ([]file, error) {
	bodies := db.dialect.Bodies
	if bodies == nil {
		return nil, nil
	}
	// Files first: one whose row comes later is not old.
	var files []file
	folders, err := bodies.List(".")
	if err != nil {
		return nil, err
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		entries, err := bodies.List(folder.Name())
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			files = append(files, file{path.Join(folder.Name(), e.Name()), info.ModTime()})
		}
	}
	named := map[string]bool{}
	names, err := db.bodies(ctx, db.read, `1 = 1`)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		named[name] = true
	}
	var left []file
	for _, f := range files {
		if durable.IsTemp(path.Base(f.name)) || !named[f.name] {
			left = append(left, f)
		}
	}
	return left, nil
}

func (db *DB) removeLeftovers(ctx context.Context) error {
	left, err := db.leftovers(ctx)
	for _, f := range left {
		// The clock of the file system, not that of rows.
		if err == nil && time.Since(f.made) > leftover {
			err = db.removeBody(f.name)
		}
	}
	return err
}
