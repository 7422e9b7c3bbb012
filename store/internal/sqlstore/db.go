// Package sqlstore is a store in a SQL database: the common part of store/sqlite and
// store/postgres. The statements are the same for both; a Dialect holds what differs.
//
// # Tables
//
//	threads    one row for each thread: its name, and its numbers of messages, plans and events
//	messages   (thread, position): id and content of a message
//	plans      (thread, version)
//	marks      (thread, position): since which version all plans cover the message
//	events     (thread, position)
//	documents  (tenant, kind, id)
//	summaries  (tenant, key): cached answers of models
//	artifacts  (tenant, id)
//	data_keys  (tenant, version): wrapped by a master key; key_owners says whose were erased
//	api_keys   (id)
//
// Threads have a number that is never reused, so that a thread that was deleted and
// created again is told from the one before. The other tables refer to threads by number,
// and the number is found only by tenant and name.
//
// # Writing
//
// Every write is one transaction that first locks the row of its thread. So the writers
// of a thread take turns, and the counts in that row are its versions. Loaded threads stay
// in memory: they only grow, so loading one again reads only the new rows.
//
// # Keys
//
// Data keys are stored in the same database as the content. So that no transaction waits
// for another one of the same process, the keyring is asked before a transaction begins
// for as many encryptions as it will need, and keys are read over a connection of their
// own.
package sqlstore

import (
	"cmp"
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
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// Dialect holds what differs between engines.
type Dialect struct {
	// Name is the prefix of errors, such as "sqlite".
	Name string
	// Migrations has the files migrations/*.sql. Versions creates the table of the
	// migrations that were made, in the form of goose, which older versions used.
	Migrations fs.FS
	Versions   string
	// OneWriter says that only one connection can write at a time: tenants take turns.
	OneWriter bool
	// Wait is how long a write waits for its turn, and then for a connection; 0 is as long as its
	// context. After that the error wraps store.ErrUnavailable.
	Wait time.Duration
	// Alone begins a transaction that excludes others of its kind.
	Alone []string
	// ForUpdate ends a query that locks its rows.
	ForUpdate string
	// Explain wraps an error of the engine in the sentinel of package store that says
	// what it means.
	Explain func(error) error
	// Renew drops connections that may be dead. It may be nil.
	Renew func()
	// Again reports whether the engine aborted a transaction in favor of another, so
	// that it may be tried again. It may be nil.
	Again func(error) bool
	// Bodies holds large contents of artifacts; nil puts them into the database.
	Bodies *durable.Dir
	// Tidy returns the space of deleted rows to the system.
	Tidy []string
	// Settle removes overwritten rows from the journal, and SettleKeys erased and replaced
	// keys from the files. An error says that some may still be there. They may be nil.
	Settle, SettleKeys func(context.Context, *sql.DB) error
	// Size is the query for the size of the database in bytes.
	Size string
	// Refuse returns an error if writes would be lost, such as to a file that was
	// removed. It is called before and after each transaction. It may be nil.
	Refuse func() error
	// Integrity is the query for damage that the engine finds: a line for each, or "ok".
	// Empty if there is none.
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
	answered          atomic.Int64 // number of answers written
	settled           atomic.Bool  // Dialect.Settle has removed what Reseal has replaced
}

var (
	_ store.DB     = (*DB)(nil)
	_ store.Sealed = (*DB)(nil)
	_ store.Keyed  = (*DB)(nil)
	_ store.Prober = (*DB)(nil)
)

// Pools are the connections to one database. Write and Read may be the same. Keys has one
// connection that nothing else uses; without master keys it may be Read.
type Pools struct{ Write, Read, Keys *sql.DB }

// Close closes all of them.
func (p Pools) Close() error { return errors.Join(p.Write.Close(), p.Read.Close(), p.Keys.Close()) }

// New returns the store in a database, after it has created or migrated the tables. The
// error wraps store.ErrNewer if a later version has migrated them. step is called with the
// name of each step of a write, for tests that cause failures; nil is crash.Point.
func New(ctx context.Context, pools Pools, d Dialect, o *store.Options, step func(name string)) (*DB, error) {
	o = cmp.Or(o, &store.Options{})
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

func (db *DB) Tenant(id string) store.Tenant {
	t := &tenant{db: db, id: id}
	return store.Tenant{Log: t, Plans: t, Catalog: t, Events: t, Documents: t, Answers: answers{t}}
}

func (db *DB) Tenants(ctx context.Context) iter.Seq2[string, error] {
	const all = `SELECT tenant FROM threads UNION SELECT tenant FROM documents WHERE length(content) > 0 UNION SELECT tenant FROM artifacts UNION SELECT tenant FROM summaries`
	return db.names(ctx, "Tenants", `SELECT tenant FROM (`+all+`) AS known ORDER BY tenant`)
}

func (db *DB) Artifacts() artifact.Backend { return backend{db} }

func (db *DB) Close() error { return Pools{db.write, db.read, db.keys}.Close() }

// tenant implements the interfaces of store.Tenant.
type tenant struct {
	db *DB
	id string
}

// check returns an error for names that cannot be stored.
func (t *tenant) check(threadID string) error {
	return errors.Join(store.CheckName("tenant", t.id), store.CheckThread(threadID))
}

// usable is check, and returns an error if the tenant's keys were erased. What is in the
// caches of this store and of its callers is not encrypted, and must not outlive the keys.
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

// tries bounds how often a transaction is tried that the engine aborts.
const tries = 4

// tx runs f in a transaction, which is committed if f returns nil. f may run several
// times. The name is the prefix of its steps.
func (db *DB) tx(ctx context.Context, name string, f func(*sql.Tx) error) error {
	return db.again(func() error { return db.once(ctx, name, f) })
}

// sealing is DB.tx for an f that seals at most so many contents of the tenant.
func (t *tenant) sealing(ctx context.Context, name string, contents int, f func(*sql.Tx, sealer) error) error {
	if t.db.dialect.OneWriter {
		end, err := acquire(ctx, t.db.dialect.Wait, func(ctx context.Context) (func(), error) { return t.db.turns.take(ctx, t.id) })
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
	tx, end, err := begin(ctx, db)
	if err != nil && db.dialect.Renew != nil && errors.Is(db.dialect.Explain(err), store.ErrUnavailable) {
		// An idle connection had died; nothing has been done yet.
		db.dialect.Renew()
		tx, end, err = begin(ctx, db)
	}
	if err != nil {
		return err
	}
	defer end()
	defer tx.Rollback() // after a panic; else it is over
	db.step(name + ": begun")
	if err := f(tx); err != nil {
		// The first error is the one that matters.
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

// begin begins a transaction on a connection that end gives back.
func begin(ctx context.Context, db *DB) (tx *sql.Tx, end func() error, err error) {
	conn, err := acquire(ctx, db.dialect.Wait, db.write.Conn)
	if err != nil {
		return nil, nil, err
	}
	if tx, err = conn.BeginTx(ctx, nil); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return tx, conn.Close, nil
}

// acquire waits for what others may have, at most for some time; 0 is as long as ctx.
func acquire[T any](ctx context.Context, most time.Duration, f func(context.Context) (T, error)) (T, error) {
	if most == 0 {
		return f(ctx)
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	got, err := f(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w: other writes have taken %s", store.ErrUnavailable, most)
	}
	return got, err
}

func (db *DB) refuse() error {
	if db.dialect.Refuse == nil {
		return nil
	}
	return db.dialect.Refuse()
}

// failure is an error of the store. It has its class in events.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Class is "storage".
func (failure) Class() string { return "storage" }

// fail adds the operation and its subject to an error.
func (db *DB) fail(err *error, op, subject string) {
	if *err == nil {
		return
	}
	*err = db.dialect.Explain(*err)
	// A new connection would have opened whatever file is there now.
	if gone := db.refuse(); errors.Is(gone, store.ErrGone) && !errors.Is(*err, store.ErrGone) {
		*err = fmt.Errorf("%w: %w", gone, *err)
	}
	*err = failure{fmt.Errorf("%s.%s(%s): %w", db.dialect.Name, op, subject, *err)}
}
