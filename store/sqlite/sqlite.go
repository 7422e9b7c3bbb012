// Package sqlite is a store in one SQLite file, for one machine. It is the store to begin
// with.
//
//	db, err := sqlite.Open(ctx, "palimpsest.db", nil)
//	defer db.Close()
//	c, err := palimpsest.New(palimpsest.Config{Store: db.Tenant("")})
//
// Next to the file are its journal (FILE-wal, FILE-shm) and a folder for large artifacts
// (FILE-artifacts). They belong together: copy all of them while nobody writes, or use
// `palimpsest db export`.
//
// Deleted and overwritten data is gone from the file (secure_delete), and from the journal
// when that is overwritten.
//
// Acknowledged writes survive a crash of the process and a power failure (WAL,
// synchronous=FULL). Several processes of one machine may use one file: writers wait for
// each other, readers wait for nobody. Do not put it on a network file system.
package sqlite

import (
	"cmp"
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
	*shared
	write  *sql.DB
	bodies durable.Dir
}

// shared is what all SQL stores have in common.
type shared = sqlstore.DB

var _ store.DB = (*DB)(nil)

// wait is how long a write waits for another process, in milliseconds.
const wait = 10_000

// Open opens the store in a file, or creates the file; its folder must exist. The error
// wraps store.ErrNewer, store.ErrReadOnly or store.ErrFull, or says what is wrong with
// the file.
func Open(ctx context.Context, path string, o *Options) (*DB, error) {
	return open(ctx, path, o, nil)
}

func open(ctx context.Context, path string, o *Options, step func(string)) (*DB, error) {
	o = cmp.Or(o, &Options{})
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

// The parameters of connections that write and that read. Neither creates a file: one that
// was removed would come back empty.
const (
	writing = "mode=rw&_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=secure_delete(1)"
	reading = "mode=rw&_pragma=query_only(1)"
)

// unwritable returns the parameters of connections to a file that cannot be written. If a
// crash has left a journal, SQLite reads that too; otherwise it must be told not to create
// one.
func unwritable(path string) string {
	const reading = "mode=ro&_pragma=query_only(1)"
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return reading
	}
	return reading + "&immutable=1"
}

// openTo opens the store for reading and writing, or read-only if why is an error.
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
	db.shared, err = sqlstore.New(ctx, pools, sqlstore.Dialect{
		Name: "sqlite", Migrations: migrations, Bodies: &db.bodies,
		Versions:   `CREATE TABLE IF NOT EXISTS palimpsest_schema (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`,
		OneWriter:  true,
		Wait:       wait * time.Millisecond,
		Alone:      []string{"BEGIN EXCLUSIVE"},
		Explain:    explain,
		Tidy:       []string{`VACUUM`, checkpoint},
		Settle:     emptyJournal,
		SettleKeys: emptyJournal,
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

// checkpoint writes the journal into the file and empties it. Its row begins with 1 if it
// could not: somebody was reading for longer than a write waits or, at once, another process
// was at the same.
const checkpoint = `PRAGMA wal_checkpoint(TRUNCATE)`

// checkpointPause is the time between two tries while another process is at it.
const checkpointPause = 20 * time.Millisecond

// errReading is the error of emptyJournal.
var errReading = fmt.Errorf("the journal of the store may still hold what was erased or replaced: another process has been using the store for %d seconds; end it and try again", wait/1000)

// emptyJournal removes overwritten and deleted rows from the journal.
func emptyJournal(ctx context.Context, db *sql.DB) error {
	for began := time.Now(); ; {
		var busy, pages, written int
		err := db.QueryRowContext(ctx, checkpoint).Scan(&busy, &pages, &written)
		switch {
		case err != nil || busy == 0:
			return err
		case time.Since(began) > wait*time.Millisecond:
			return errReading
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(checkpointPause):
		}
	}
}

// place is where a store was opened. Writes to files that were removed or replaced since
// are lost when the last connection to them closes.
type place struct {
	why   error // why nothing can be written, or nil
	files map[string]os.FileInfo
}

// remember records the files that exist now.
func (p *place) remember(paths ...string) {
	p.files = map[string]os.FileInfo{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			p.files[path] = info
		}
	}
}

// refuse returns an error if nothing may be written.
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

// prepare creates the file, readable for its owner only.
func prepare(path string, existing bool) error {
	if path == "" {
		return errors.New("the file name is empty")
	}
	folder := filepath.Dir(path)
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return &explained{fmt.Sprintf("the folder %s does not exist; create it first", folder), err}
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", folder)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder, not a file; without the prefix sqlite: it names palimpsest.db in the folder")
	}
	flags := os.O_RDWR
	if !existing {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return &explained{fmt.Sprintf("the store %s does not exist", path), err}
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, readOnlyFS) {
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// pool returns a pool of connections to a file, none of them opened yet.
func pool(file, params string, conns int) *sql.DB {
	file = filepath.ToSlash(file)
	if !strings.HasPrefix(file, "/") {
		file = "/" + file // a drive letter
	}
	name := url.URL{Scheme: "file", Path: file, RawQuery: fmt.Sprintf("_pragma=busy_timeout(%d)&%s", wait, params)}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		panic(err) // only for an unknown driver, and this package imports it
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// ready opens the first connection. It tries for as long as a write waits: when several
// processes create a file at the same time, each sets the journal mode, and SQLite does
// not wait for a lock there.
func ready(ctx context.Context, db *sql.DB) error {
	limited, cancel := context.WithTimeout(ctx, wait*time.Millisecond)
	defer cancel()
	tick := time.NewTicker(wait * time.Millisecond / 500)
	defer tick.Stop()
	for {
		err := db.PingContext(ctx)
		var e *sqlite.Error
		if err == nil || !errors.As(err, &e) || e.Code()&0xff != codes.SQLITE_BUSY || limited.Err() != nil {
			return err // SQLite may have waited all of the time for another lock
		}
		select {
		case <-tick.C:
		case <-limited.Done():
			return err
		}
	}
}

// SQL returns the pool that writes, which has one connection, for callers with tables of
// their own in the same file. Their transactions and those of the store wait for each
// other: keep them short, and never call the store inside one.
func (db *DB) SQL() *sql.DB { return db.write }

// Close closes the file.
func (db *DB) Close() error {
	return errors.Join(db.shared.Close(), db.bodies.Root.Close())
}

// explained is an error in words that say all of it.
type explained struct {
	words string
	err   error
}

// Error returns the words.
func (e *explained) Error() string { return e.words }

// Unwrap returns the error that they explain.
func (e *explained) Unwrap() error { return e.err }

// explain wraps an error of SQLite in the sentinel or the words that say what it means. It
// may be called again for what it returned.
func explain(err error) error {
	var e *sqlite.Error
	var done *explained
	switch {
	case errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrUnavailable), errors.As(err, &done):
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
		// No space for the index of the journal; or a quota, or a limit on file sizes.
		if e.Code() == codes.SQLITE_IOERR_SHMSIZE || e.Code() == codes.SQLITE_IOERR_WRITE {
			return fmt.Errorf("%w: %w", store.ErrFull, err)
		}
	case codes.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process has been writing for %d seconds; is it stuck? %w", store.ErrUnavailable, wait/1000, err)
	case codes.SQLITE_NOTADB:
		return &explained{"the file is not a SQLite database", err}
	case codes.SQLITE_CORRUPT:
		return &explained{fmt.Sprintf("the file is damaged; restore a backup, or save what can be read with `sqlite3 FILE .recover`: %v", err), err}
	}
	return err
}
