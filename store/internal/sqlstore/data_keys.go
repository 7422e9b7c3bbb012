package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"github.com/palimpsest-ai/palimpsest/apikey"
	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
)

// DataKeys implements store.Keyed.
func (db *DB) DataKeys() keyring.Keys { return dataKeys{db} }

// Keyring implements store.Keyed.
func (db *DB) Keyring() *keyring.Keyring { return db.ring }

// APIKeys implements store.Keyed.
func (db *DB) APIKeys() apikey.Store { return apiKeys{db} }

var (
	_ keyring.Keys    = dataKeys{}
	_ keyring.Settler = dataKeys{}
)

// dataKeys implements keyring.Keys. Each tenant has a row of its own, which every
// change locks and which outlives its keys: it says that they were erased.
type dataKeys struct{ db *DB }

// Load implements keyring.Keys. It reads over a connection that nothing else uses:
// contents are opened inside of transactions, and all other connections may be in
// some that wait for a key.
func (k dataKeys) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	var keys []keyring.Wrapped
	err := errors.Join(ctx.Err(), store.CheckName("tenant", tenant))
	if err == nil {
		err = k.db.rows(ctx, k.db.keys, func(scan func(...any) error) error {
			w := keyring.Wrapped{Tenant: tenant}
			var erased bool
			var version, revision, used, created sql.NullInt64
			var master sql.NullString
			if err := scan(&erased, &version, &revision, &master, &w.Sealed, &used, &created); err != nil {
				return err
			}
			if erased {
				return keyring.ErrErased
			}
			if version.Valid {
				w.Version, w.Revision, w.Master = int(version.Int64), int(revision.Int64), master.String
				w.Used, w.Created = uint64(used.Int64), time.Unix(created.Int64, 0).UTC()
				keys = append(keys, w)
			}
			return nil
		}, `SELECT o.erased, k.version, k.revision, k.master, k.sealed, k.used, k.created
			FROM key_owners o LEFT JOIN data_keys k ON k.tenant = o.tenant WHERE o.tenant = $1 ORDER BY k.version`, tenant)
	}
	if err != nil {
		return nil, k.db.fail(err, "LoadKeys", tenant)
	}
	return keys, nil
}

// change runs f in a transaction that has the row of the tenant, and reports
// whether its keys were erased.
func (k dataKeys) change(ctx context.Context, name, tenant string, f func(tx *sql.Tx, erased bool) error) error {
	if err := errors.Join(ctx.Err(), store.CheckName("tenant", tenant)); err != nil {
		return err
	}
	return k.db.tx(ctx, name, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO key_owners (tenant, erased) VALUES ($1, FALSE) ON CONFLICT DO NOTHING`, tenant); err != nil {
			return err
		}
		var erased bool
		err := tx.QueryRowContext(ctx, `SELECT erased FROM key_owners WHERE tenant = $1`+k.db.dialect.ForUpdate, tenant).Scan(&erased)
		if err != nil {
			return err
		}
		return f(tx, erased)
	})
}

// Put implements keyring.Keys.
func (k dataKeys) Put(ctx context.Context, w keyring.Wrapped) error {
	err := k.change(ctx, "keys", w.Tenant, func(tx *sql.Tx, erased bool) error {
		if erased {
			return keyring.ErrErased
		}
		var newest, revision int
		err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM data_keys WHERE tenant = $1`, w.Tenant).Scan(&newest)
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, `SELECT revision FROM data_keys WHERE tenant = $1 AND version = $2`, w.Tenant, w.Version).Scan(&revision)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if revision != w.Revision-1 || w.Revision == 1 && w.Version != newest+1 {
			return keyring.ErrConflict
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO data_keys (tenant, version, revision, master, sealed, used, created) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (tenant, version) DO UPDATE SET revision = excluded.revision, master = excluded.master, sealed = excluded.sealed, used = excluded.used, created = excluded.created`,
			w.Tenant, w.Version, w.Revision, w.Master, w.Sealed, int64(w.Used), w.Created.Unix())
		return err
	})
	return k.db.fail(err, "PutKey", w.Tenant)
}

// Erase implements keyring.Keys.
func (k dataKeys) Erase(ctx context.Context, tenant string) error {
	err := k.change(ctx, "keys erase", tenant, func(tx *sql.Tx, _ bool) error {
		if _, err := tx.ExecContext(ctx, `UPDATE key_owners SET erased = TRUE WHERE tenant = $1`, tenant); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM data_keys WHERE tenant = $1`, tenant)
		return err
	})
	if err == nil {
		err = k.Settle(ctx)
	}
	return k.db.fail(err, "EraseKeys", tenant)
}

// Settle implements keyring.Settler.
func (k dataKeys) Settle(ctx context.Context) error {
	for _, statement := range k.db.dialect.SettleKeys {
		if _, err := k.db.write.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Tenants implements keyring.Keys.
func (k dataKeys) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return names(ctx, k.db, "KeyTenants", `SELECT DISTINCT tenant FROM data_keys ORDER BY tenant`)
}

// names yields the names that a query selects, which is over when the first comes.
func names(ctx context.Context, db *DB, op, query string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var all []string
		err := db.rows(ctx, db.read, func(scan func(...any) error) error {
			var name string
			err := scan(&name)
			all = append(all, name)
			return err
		}, query)
		if err != nil {
			yield("", db.fail(err, op, ""))
			return
		}
		for _, name := range all {
			if !yield(name, nil) {
				return
			}
		}
	}
}
