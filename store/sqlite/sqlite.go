// Package sqlite keeps threads, plans and all that belongs to them in one file,
// for one machine: the store to begin with.
//
//	db, err := sqlite.Open(ctx, "palimpsest.db", nil)
//	defer db.Close()
//	t := db.Tenant("")
//	c, err := palimpsest.New(palimpsest.Config{Log: t.Log, Plans: t.Plans})
//
// Beside the file stand those of its journal (FILE-wal, FILE-shm) and a folder
// for large contents of artifacts (FILE-artifacts). They belong together: copy
// them all, while nobody writes, or use `palimpsest db export`.
//
// What was deleted or written over is gone from the file, and from the journal
// when that is written over (secure_delete).
//
// What was acknowledged survives the end of the process and of the power (WAL,
// synchronous=FULL). Several processes of one machine may use one file: one of
// them writes at a time, the others wait for it, and readers wait for nobody. Do
// not put it on a network file system.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/internal/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options tune a DB.
type Options = store.Options

// DB is a store in a SQLite file. It is safe for concurrent use.
type DB struct {
	*sqlstore.DB
	write  *sql.DB
	bodies durable.Dir
}

var _ store.DB = (*DB)(nil)

// wait is how long a write waits for that of another process, in milliseconds.
const wait = 10_000

// Open opens the store in a file, which it makes when it is not there; the
// folder must be. The error wraps store.ErrNewer, store.ErrReadOnly or
// store.ErrFull, or says what is wrong with the file.
func Open(ctx context.Context, path string, o *Options) (*DB, error) {
	return open(ctx, path, o, nil)
}

func open(ctx context.Context, path string, o *Options, step func(string)) (*DB, error) {
	if o == nil {
		o = &Options{}
	}
	db, err := openTo(ctx, path, o, step, nil)
	err = explain(err)
	if o.Readable && (errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrReadOnly)) {
		if info, missing := os.Stat(path); missing == nil && info.Mode().IsRegular() && info.Size() > 0 {
			why := err
			if db, err = openTo(ctx, path, o, step, why); err != nil {
				err = errors.Join(why, err)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("sqlite.Open(%s): %w", path, explain(err))
	}
	return db, nil
}

// The parameters of connections that write and that read. None makes a file: one that
// was removed would come back empty.
const (
	writing = "mode=rw&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)"
	reading = "mode=rw&_pragma=query_only(1)"
)

// unwritable are the parameters of connections to a file that nobody here can write
// to. SQLite reads one that a crash left a journal beside with that, and else needs to
// be told that it makes none.
func unwritable(path string) string {
	const reading = "mode=ro&_pragma=query_only(1)"
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return reading
	}
	return reading + "&immutable=1"
}

// openTo opens the store to read and write, or, where there is a reason why not to
// write, to read.
func openTo(ctx context.Context, path string, o *Options, step func(string), why error) (_ *DB, err error) {
	writing, reading := writing, reading
	if why != nil {
		writing = unwritable(path)
		reading = writing
	} else if err := prepare(path, o.Existing); err != nil {
		return nil, err
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	pools := sqlstore.Pools{Write: pool(full, writing, 1), Read: pool(full, reading, max(4, runtime.NumCPU())), Keys: pool(full, reading, 1)}
	db := &DB{write: pools.Write}
	defer func() {
		if err != nil {
			err = errors.Join(err, pools.Close())
		}
	}()
	if err := ready(ctx, db.write); err != nil {
		return nil, err
	}
	if db.bodies, err = durable.Open(path + "-artifacts"); err != nil {
		return nil, err
	}
	place := &place{why: why}
	db.DB, err = sqlstore.New(ctx, pools, sqlstore.Dialect{
		Name: "sqlite", Migrations: migrations, Bodies: &db.bodies,
		Versions:   `CREATE TABLE IF NOT EXISTS palimpsest_schema (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`,
		OneWriter:  true,
		Alone:      []string{"BEGIN EXCLUSIVE"},
		Explain:    explain,
		Tidy:       []string{`VACUUM`, `PRAGMA wal_checkpoint(TRUNCATE)`},
		Settle:     []string{`PRAGMA wal_checkpoint(TRUNCATE)`},
		SettleKeys: []string{`PRAGMA wal_checkpoint(TRUNCATE)`},
		Size:       `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`,
		Refuse:     place.refuse,
		Integrity:  `PRAGMA integrity_check`,
	}, o, step)
	if err != nil {
		return nil, errors.Join(err, db.bodies.Root.Close())
	}
	place.remember(path, path+"-wal", path+"-artifacts")
	return db, nil
}

// place is where a store was opened. What is written to files that were removed or
// replaced meanwhile is gone when the last connection to them is.
type place struct {
	why   error // why nothing can be written; nil where it can
	files map[string]os.FileInfo
}

// remember remembers files as they are now, those that are there.
func (p *place) remember(paths ...string) {
	p.files = map[string]os.FileInfo{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			p.files[path] = info
		}
	}
}

// refuse reports why nothing may be written.
func (p *place) refuse() error {
	if p.why != nil {
		return p.why
	}
	for path, was := range p.files {
		switch is, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(was, is):
			return fmt.Errorf("%s: %w", path, store.ErrGone)
		case err != nil:
			return err
		}
	}
	return nil
}

// prepare makes the file, for its owner alone, and says what is in the way.
func prepare(path string, existing bool) error {
	if path == "" {
		return errors.New("no file was named")
	}
	folder := filepath.Dir(path)
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no folder %s; make it first: %w", folder, err)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder, and a file is wanted; without sqlite: in front it names palimpsest.db in the folder")
	}
	flags := os.O_RDWR
	if !existing {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no store %s: %w", path, fs.ErrNotExist)
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, readOnlyFS) {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// pool has connections to a file, none of them made yet.
func pool(file, params string, conns int) *sql.DB {
	file = filepath.ToSlash(file)
	if !strings.HasPrefix(file, "/") {
		file = "/" + file // a drive letter
	}
	name := url.URL{Scheme: "file", Path: file, RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&%s", wait, params)}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		panic(err) // there is no driver of this name, and this package imports it
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// ready makes the first connection. SQLite does not wait for others while it
// changes the kind of journal, which each of several processes that make a file
// at the same time tries; so it is tried again, for as long as a write waits.
func ready(ctx context.Context, db *sql.DB) error {
	limited, cancel := context.WithTimeout(ctx, wait*time.Millisecond)
	defer cancel()
	tick := time.NewTicker(wait * time.Millisecond / 500)
	defer tick.Stop()
	for {
		err := db.PingContext(ctx)
		var e *sqlite.Error
		if err == nil || !errors.As(err, &e) || e.Code()&0xff != codes.SQLITE_BUSY {
			return err
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return err
		}
	}
}

// SQL is the pool that writes, of one connection, for those who keep tables of
// their own in the same file. Their transactions wait for those of the store and
// the other way round: keep them short, and never call the store inside of one.
func (db *DB) SQL() *sql.DB { return db.write }

// Close gives the file back.
func (db *DB) Close() error {
	return errors.Join(db.DB.Close(), db.bodies.Root.Close())
}

// explain says what an error of SQLite means.
func explain(err error) error {
	var e *sqlite.Error
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly): // it was, further down
		return err
	case !errors.As(err, &e):
		return explainFile(err)
	}
	switch e.Code() & 0xff {
	case codes.SQLITE_FULL:
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case codes.SQLITE_READONLY, codes.SQLITE_PERM:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	case codes.SQLITE_IOERR:
		// No room for the index of the journal; a quota, or a limit on files.
		if e.Code() == codes.SQLITE_IOERR_SHMSIZE || e.Code() == codes.SQLITE_IOERR_WRITE {
			return fmt.Errorf("%w: %w", store.ErrFull, err)
		}
	case codes.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fmt.Errorf("another process has been writing for %d seconds; is one of them stuck? %w", wait/1000, err)
	case codes.SQLITE_NOTADB:
		return fmt.Errorf("the file is not a SQLite database: %w", err)
	case codes.SQLITE_CORRUPT:
		return fmt.Errorf("the file is damaged; restore a copy, or try to save what can be read with `sqlite3 FILE .recover`: %w", err)
	}
	return err
}
