package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
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

// apiKeys implements apikey.Store.
type apiKeys struct{ db *DB }

// Add implements apikey.Store.
func (s apiKeys) Add(ctx context.Context, k apikey.Key) error {
	err := store.CheckName("tenant", k.Tenant)
	if !apikey.IsID(k.ID) {
		err = fmt.Errorf("%q is no id of an API key", k.ID)
	}
	if err == nil {
		err = s.db.tx(ctx, "api key", func(tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, `INSERT INTO api_keys (id, tenant, rights, name, created, expires, revoked, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
				k.ID, k.Tenant, k.Rights.String(), []byte(k.Name), second(k.Created), second(k.Expires), second(k.Revoked), k.Hash[:])
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); err != nil || n == 0 {
				return errors.Join(err, apikey.ErrExists)
			}
			return nil
		})
	}
	return s.db.fail(err, "AddAPIKey", k.ID)
}

const keyColumns = `id, tenant, rights, name, created, expires, revoked, hash`

// scanKey reads a row. What it cannot mean comes with the id.
func scanKey(scan func(...any) error) (k apikey.Key, damage, err error) {
	var rights string
	var name, hash []byte
	var created, expires, revoked int64
	if err := scan(&k.ID, &k.Tenant, &rights, &name, &created, &expires, &revoked, &hash); err != nil {
		return apikey.Key{}, nil, err
	}
	k.Rights, damage = apikey.ParseRights(rights)
	if len(hash) != sha256.Size {
		damage = errors.Join(damage, errors.New("its hash has another length"))
	}
	if damage != nil {
		return apikey.Key{ID: k.ID}, fmt.Errorf("key %s: %w; %w: revoke it, and make another", k.ID, errDamaged, damage), nil
	}
	k.Name, k.Hash = string(name), [sha256.Size]byte(hash)
	k.Created, k.Expires, k.Revoked = fromSecond(created), fromSecond(expires), fromSecond(revoked)
	return k, nil, nil
}

// second is a time as it is kept: 0 for none.
func second(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func fromSecond(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// Get implements apikey.Store.
func (s apiKeys) Get(ctx context.Context, id string) (apikey.Key, error) {
	if !apikey.IsID(id) {
		return apikey.Key{}, apikey.ErrNotFound
	}
	k, damage, err := scanKey(s.db.read.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = apikey.ErrNotFound
	}
	if err = errors.Join(err, damage); err != nil {
		return apikey.Key{}, s.db.fail(err, "APIKey", id)
	}
	return k, nil
}

// List implements apikey.Store.
func (s apiKeys) List(ctx context.Context) iter.Seq2[apikey.Key, error] {
	type listed struct {
		key    apikey.Key
		damage error
	}
	return func(yield func(apikey.Key, error) bool) {
		var all []listed
		err := s.db.rows(ctx, s.db.read, func(scan func(...any) error) error {
			k, damage, err := scanKey(scan)
			all = append(all, listed{k, damage})
			return err
		}, `SELECT `+keyColumns+` FROM api_keys ORDER BY id`)
		if err != nil {
			yield(apikey.Key{}, s.db.fail(err, "APIKeys", ""))
			return
		}
		for l := range slices.Values(all) {
			if !yield(l.key, s.db.fail(l.damage, "APIKeys", l.key.ID)) {
				return
			}
		}
	}
}

// Revoke implements apikey.Store.
func (s apiKeys) Revoke(ctx context.Context, id string, at time.Time) error {
	err := s.db.tx(ctx, "api key revoke", func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM api_keys WHERE id = $1`, id).Scan(&n); err != nil || n == 0 {
			return errors.Join(err, apikey.ErrNotFound)
		}
		_, err := tx.ExecContext(ctx, `UPDATE api_keys SET revoked = $1 WHERE id = $2 AND revoked = 0`, second(at), id)
		return err
	})
	return s.db.fail(err, "RevokeAPIKey", id)
}
