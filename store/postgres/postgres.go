// Package postgres keeps threads, plans and all that belongs to them in
// PostgreSQL 15 or later, for several machines.
//
//	db, err := postgres.Open(ctx, "postgres://palimpsest@db.example.com/palimpsest", nil)
//
// Any number of processes may use one database at once. The tables are made in
// the schema that the connection names (search_path), else in public. The user
// must be allowed to create tables there when a new version of this module is
// started for the first time.
package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/internal/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Options tune a DB; nil or the zero value holds the defaults.
type Options struct {
	// Masters encrypt contents: messages, plans, summaries, documents and events.
	// The data keys that they wrap are kept in the database, and DB.Keyring has
	// them; a connection more than pool_max_conns says reads them. What was written
	// without a key stays readable. The zero value encrypts nothing. Artifacts are
	// encrypted by artifact.Store.
	Masters keyring.Masters
	// Sealer encrypts in place of Masters; nil for none.
	Sealer store.Sealer
	// CacheBytes is about how much of loaded threads stays in memory, as stored;
	// in memory they take about twice that. 0 stands for 64 MiB, a negative
	// number for nothing.
	CacheBytes int
	// TenantBytes is how much each tenant may keep, as stored, in bytes: writes beyond it
	// wrap store.ErrQuota, from one write to a minute late where other processes write
	// too. 0 bounds nothing.
	TenantBytes int64
	// Now is the clock that dates rows. Nil is time.Now.
	Now func() time.Time
}

// DB is a store in a PostgreSQL database. It is safe for concurrent use.
type DB struct {
	*sqlstore.DB
	pool *pgxpool.Pool
	keys *pgxpool.Pool // nil without master keys
}

var _ store.DB = (*DB)(nil)

// oldest is the first version of PostgreSQL that is tested.
const oldest = 150000

// lock keeps two processes from making tables at once. It is "palimpse" in
// bytes; advisory locks of a database share their numbers.
const lock = 0x70616c696d707365

// Open connects to a database and makes its tables, or brings them up to date.
// The address is a URL (postgres://user:password@host:5432/name?sslmode=require)
// or a list of key=value, as libpq knows them; what it does not say is taken from
// PGHOST, PGUSER, PGPASSWORD and so on. pool_max_conns bounds the connections.
//
// The error wraps store.ErrUnavailable, store.ErrNewer or store.ErrReadOnly
// where it is one of these. No error holds the password.
func Open(ctx context.Context, address string, o *Options) (*DB, error) {
	return open(ctx, address, o, nil)
}

func open(ctx context.Context, address string, o *Options, step func(string)) (_ *DB, err error) {
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		// The error of the parser quotes the address.
		return nil, errors.New("postgres.Open: the address cannot be read; want postgres://user:password@host:5432/name, with % and the like escaped as in any URL, or key=value")
	}
	c := config.ConnConfig
	where := fmt.Sprintf("%s@%s/%s", c.User, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)), c.Database)
	defer func() {
		if err != nil {
			err = fmt.Errorf("postgres.Open(%s): %w", where, hide(explain(err), c.Password))
		}
	}()
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	write := stdlib.OpenDBFromPool(pool)
	db := &DB{pool: pool}
	pools := sqlstore.Pools{Write: write, Read: write}
	defer func() {
		if err != nil {
			err = errors.Join(err, pools.Close())
			db.closePools()
		}
	}()
	var version int
	if err := pool.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return nil, err
	}
	if version < oldest {
		return nil, fmt.Errorf("it is PostgreSQL %d, version %d or later is needed", version/10000, oldest/10000)
	}
	so := &sqlstore.Options{Step: step}
	if o != nil {
		so.Masters, so.Sealer, so.CacheBytes, so.TenantBytes, so.Now = o.Masters, o.Sealer, o.CacheBytes, o.TenantBytes, o.Now
	}
	if len(so.Masters.IDs()) > 0 {
		one := config.Copy()
		one.MaxConns, one.MinConns, one.MinIdleConns = 1, 0, 0
		if db.keys, err = pgxpool.NewWithConfig(ctx, one); err != nil {
			return nil, err
		}
		pools.Keys = stdlib.OpenDBFromPool(db.keys)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	db.DB, err = sqlstore.New(ctx, pools, sqlstore.Dialect{
		Name: "postgres", Goose: goose.DialectPostgres, Migrations: files, ForUpdate: ` FOR UPDATE`,
		Alone:    []string{`BEGIN`, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, int64(lock))},
		HasTable: `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1`,
		Explain:  explain,
		Renew:    pool.Reset,
		Again:    gaveUp,
		Tidy:     tidy(),
		// The rows of before stand in the file until it is written anew. It is small.
		SettleKeys: []string{`VACUUM FULL data_keys`},
		Size:       `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'`,
	}, so)
	if err != nil {
		return nil, err
	}
	return db, nil
}

func tidy() []string {
	var all []string
	for _, table := range []string{"threads", "messages", "plans", "marks", "events", "documents", "summaries", "artifacts", "key_owners", "data_keys", "api_keys", "probes"} {
		all = append(all, `VACUUM (ANALYZE) `+table)
	}
	return all
}

// Pool is the pool of connections, for those who keep tables of their own in the
// same database.
func (db *DB) Pool() *pgxpool.Pool { return db.pool }

// Close gives all connections back. It waits for those that are in use.
func (db *DB) Close() error {
	err := db.DB.Close()
	db.closePools()
	return err
}

func (db *DB) closePools() {
	db.pool.Close()
	if db.keys != nil {
		db.keys.Close()
	}
}

// hide takes a password out of an error, should it ever be in there. The error
// then is nothing but its text.
func hide(err error, password string) error {
	if err == nil || password == "" || !strings.Contains(err.Error(), password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), password, "xxxxx"))
}

// gaveUp reports whether the server ended a transaction so that another could go
// on: serialization_failure or deadlock_detected.
func gaveUp(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40001" || e.Code == "40P01")
}

// explain says what an error of PostgreSQL, or of the way there, means. The
// codes are those of its manual, appendix A.
func explain(err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull), errors.Is(err, store.ErrReadOnly):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	var refused *pgconn.ConnectError
	var e *pgconn.PgError
	var network net.Error
	switch {
	case errors.As(err, &e):
		switch {
		case e.Code == "53100": // disk_full
			return fmt.Errorf("%w: %w", store.ErrFull, err)
		case e.Code == "25006", e.Code == "42501": // read_only_sql_transaction, insufficient_privilege
			return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
		case strings.HasPrefix(e.Code, "08"), strings.HasPrefix(e.Code, "57P"), e.Code == "53300": // connection, shutdown, too_many_connections
			return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
		}
	case errors.As(err, &refused), errors.As(err, &network), pgconn.SafeToRetry(err),
		errors.Is(err, sql.ErrConnDone), errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}
