// Package sqlstore is the store in a SQL database: what store/sqlite and
// store/postgres have in common. The statements are the same for both; what
// differs is a Dialect.
//
// # Tables
//
//	threads    one row a thread: its name, and how many messages, plans and events it has
//	messages   (thread, position): id and content of a message
//	plans      (thread, version)
//	marks      (thread, position): since which version all plans cover the message
//	events     (thread, position)
//	documents  (tenant, kind, id)
//	summaries  (tenant, key): a cache of what models answered
//	artifacts  (tenant, id)
//	data_keys  (tenant, version): wrapped by a master key; key_owners says whose were erased
//	api_keys   (id)
//
// Threads have a number of their own, which is never given twice, so that a
// thread that was deleted and begun anew is told from the one before. All other
// tables of threads go by that number, and the number is only ever found by
// tenant and name.
//
// # Writing
//
// Every write is one transaction that first locks the row of its thread, so the
// writers of a thread follow each other and the counts in that row are its
// versions. Threads that were loaded stay in memory: they only grow, so loading
// one again reads the rows behind what is known.
//
// # Keys
//
// Data keys are kept in the same database as what they seal. So that no
// transaction waits for another of the same process, what is to be sealed inside
// of one is counted before it begins, and keys are loaded over a connection of
// their own.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/crash"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Dialect is what one engine does differently.
type Dialect struct {
	// Name begins errors, such as "sqlite".
	Name string
	// Migrations has a folder of the name with files in their order, and Versions makes the table of those that
	// were made, where it is not there: the one that goose would make, which did it
	// once.
	Migrations fs.FS
	Versions   string
	// OneWriter says that one connection writes at a time: tenants take turns.
	OneWriter bool
	// Alone begins a transaction that no other that begins so runs beside.
	Alone []string
	// ForUpdate ends a query whose rows are locked.
	ForUpdate string
	// Explain adds to an error of the engine what it means, as a sentinel of
	// package store, and what to do.
	Explain func(error) error
	// Renew drops connections that may be dead; nil where there are none.
	Renew func()
	// Again reports whether a transaction was given up for another, so that the
	// same may be made again; nil where that does not happen.
	Again func(error) bool
	// Bodies is where large contents of artifacts are kept; nil for the database.
	Bodies *durable.Dir
	// Tidy gives back the room of what was deleted.
	Tidy []string
	// Settle takes what was written over out of the journal, where there is one
	// that holds it.
	Settle []string
	// SettleKeys takes keys that were erased or replaced out of the files.
	SettleKeys []string
	// Size is the query of how many bytes the database takes.
	Size string
	// Refuse reports why nothing may be written: what is acknowledged now would not
	// be there after a restart. It is asked before and behind each transaction; nil
	// where that does not happen.
	Refuse func() error
	// Integrity is the query of what the engine finds damaged, a line each, or "ok";
	// empty where there is none.
	Integrity string
}

// DB is a store.DB in a SQL database.
type DB struct {
	write, read, keys *sql.DB
	dialect           Dialect
	ring              *keyring.Keyring // nil: nothing is encrypted
	masters           []string         // ids of the master keys that wrap the data keys of this database
	now               func() time.Time
	step              func(string)
	threads           cache
	quota             quota
	turns             writeQueue
	answered          atomic.Int64 // answers written, for when it is looked whether there are too many
}

var (
	_ store.DB     = (*DB)(nil)
	_ store.Sealed = (*DB)(nil)
	_ store.Keyed  = (*DB)(nil)
	_ store.Prober = (*DB)(nil)
)

// Pools are the connections to one database. Those to write and to read may be
// the same. That for keys has one connection, which nothing else uses; it may be that
// to read where there are no master keys.
type Pools struct{ Write, Read, Keys *sql.DB }

// Close closes all of them.
func (p Pools) Close() error { return errors.Join(p.Write.Close(), p.Read.Close(), p.Keys.Close()) }

// New returns the store in a database, whose tables it makes or brings up to
// date. The error wraps store.ErrNewer when the database was made by a later
// version. step is called with the name of each step of a write, for tests that do
// harm there; nil is crash.Point.
func New(ctx context.Context, pools Pools, d Dialect, o *store.Options, step func(name string)) (*DB, error) {
	if o == nil {
		o = &store.Options{}
	}
	db := &DB{
		write: pools.Write, read: pools.Read, keys: pools.Keys, dialect: d,
		ring: o.Keyring, now: o.Now, step: step, threads: newCache(o.CacheBytes), quota: newQuota(o.TenantBytes),
	}
	if db.now == nil {
		db.now = time.Now
	}
	if db.step == nil {
		db.step = crash.Point
	}
	if len(o.Masters.IDs()) > 0 {
		db.ring, db.masters = keyring.New(o.Masters, db.DataKeys(), nil), o.Masters.IDs()
	}
	if err := db.migrate(ctx); err != nil {
		return nil, d.Explain(err)
	}
	return db, nil
}

// Tenant implements store.DB.
func (db *DB) Tenant(id string) store.Tenant {
	t := &tenant{db: db, id: id}
	return store.Tenant{Log: t, Plans: t, Catalog: t, Events: t, Documents: t, Answers: answers{t}}
}

// Tenants implements store.DB.
func (db *DB) Tenants(ctx context.Context) iter.Seq2[string, error] {
	const all = `SELECT tenant FROM threads UNION SELECT tenant FROM documents WHERE length(content) > 0 UNION SELECT tenant FROM artifacts`
	return db.names(ctx, "Tenants", `SELECT tenant FROM (`+all+`) AS known ORDER BY tenant`)
}

// Artifacts implements store.DB.
func (db *DB) Artifacts() artifact.Backend { return backend{db} }

// Close implements store.DB.
func (db *DB) Close() error { return Pools{db.write, db.read, db.keys}.Close() }

// tenant implements the contracts of what one tenant keeps.
type tenant struct {
	db *DB
	id string
}

var (
	_ store.Log       = (*tenant)(nil)
	_ store.Plans     = (*tenant)(nil)
	_ store.Catalog   = (*tenant)(nil)
	_ store.Events    = (*tenant)(nil)
	_ store.Documents = (*tenant)(nil)
)

// check reports names that cannot be kept.
func (t *tenant) check(threadID string) error {
	if err := store.CheckName("tenant", t.id); err != nil {
		return err
	}
	return store.CheckThread(threadID)
}

// usable is check, and reports a tenant whose keys were erased. Threads in memory
// are in the clear, and must not outlive the keys.
func (t *tenant) usable(ctx context.Context, threadID string) error {
	if err := t.check(threadID); err != nil {
		return err
	}
	return t.living(ctx)
}

func (t *tenant) living(ctx context.Context) error {
	erased, err := t.db.Erased(ctx, t.id)
	if erased {
		t.db.threads.forgetTenant(t.id)
		err = fmt.Errorf("tenant %q: %w", t.id, store.ErrErased)
	}
	return err
}

// tries bounds how often a transaction is made that the engine gave up for
// another.
const tries = 4

// tx runs f in a transaction, which is committed when f gives no error. f may
// run several times. The name is that of its steps.
func (db *DB) tx(ctx context.Context, name string, f func(*sql.Tx) error) error {
	return db.again(func() error { return db.once(ctx, name, f) })
}

// sealing is DB.tx for what seals so many contents of a tenant at most.
func (t *tenant) sealing(ctx context.Context, name string, contents int, f func(*sql.Tx, sealer) error) error {
	if t.db.dialect.OneWriter {
		end, err := t.db.turns.take(ctx, t.id)
		if err != nil {
			return err
		}
		defer end()
	}
	return t.db.again(func() error {
		seal, err := t.reserve(ctx, contents)
		if err != nil {
			return err
		}
		return t.db.once(ctx, name, func(tx *sql.Tx) error {
			if err := t.db.inTheClear(ctx, tx); err != nil {
				return err
			}
			return f(tx, seal)
		})
	})
}

func (db *DB) again(transaction func() error) error {
	for try := 1; ; try++ {
		err := transaction()
		if err == nil || db.dialect.Again == nil || !db.dialect.Again(err) || try == tries {
			return err
		}
	}
}

func (db *DB) once(ctx context.Context, name string, f func(*sql.Tx) error) error {
	if err := db.refuse(); err != nil {
		return err
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil && db.dialect.Renew != nil && errors.Is(db.dialect.Explain(err), store.ErrUnavailable) {
		// A connection that died while nobody used it; nothing has been done yet.
		db.dialect.Renew()
		tx, err = db.write.BeginTx(ctx, nil)
	}
	if err != nil {
		return err
	}
	db.step(name + ": begun")
	if err := f(tx); err != nil {
		// What went wrong first is what matters.
		_ = tx.Rollback()
		return err
	}
	db.step(name + ": written")
	if err := tx.Commit(); err != nil {
		return err
	}
	db.step(name + ": committed")
	return db.refuse()
}

func (db *DB) refuse() error {
	if db.dialect.Refuse == nil {
		return nil
	}
	return db.dialect.Refuse()
}

// fail says what failed. Conflicts and the like come through as they are.
func (db *DB) fail(err *error, op, subject string) {
	if *err == nil {
		return
	}
	*err = db.dialect.Explain(*err)
	// A connection that was made since meets whatever is in the place now.
	if gone := db.refuse(); errors.Is(gone, store.ErrGone) && !errors.Is(*err, store.ErrGone) {
		*err = fmt.Errorf("%w: %w", gone, *err)
	}
	*err = fmt.Errorf("%s.%s(%s): %w", db.dialect.Name, op, subject, *err)
}
