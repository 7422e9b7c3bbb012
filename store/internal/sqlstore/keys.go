package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// apiKeys implements apikey.Store.
type apiKeys struct{ db *DB }

const keyColumns = `id, tenant, rights, name, created, expires, revoked, hash`

func (s apiKeys) Add(ctx context.Context, k apikey.Key) (err error) {
	defer s.db.fail(&err, "AddAPIKey", k.ID)
	if err := store.CheckName("tenant", k.Tenant); err != nil {
		return err
	}
	if !apikey.IsID(k.ID) {
		return fmt.Errorf("%q is not the id of an API key", k.ID)
	}
	return s.db.tx(ctx, "api key", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO api_keys (`+keyColumns+`) VALUES (`+marks(1, 8)+`) ON CONFLICT DO NOTHING`,
			k.ID, k.Tenant, k.Rights.String(), []byte(k.Name), second(k.Created), second(k.Expires), second(k.Revoked), k.Hash[:])
		return changed(result, err, apikey.ErrExists)
	})
}

// changed returns the error none if a statement has changed no row.
func changed(result sql.Result, err, none error) error {
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, none)
	}
	return nil
}

// readKey is a key, or only its id and the reason why its row is damaged.
type readKey struct {
	apikey.Key
	damage error
}

func scanKey(scan scan) (k readKey, err error) {
	var rights string
	var name, hash []byte
	var created, expires, revoked int64
	if err := scan(&k.ID, &k.Tenant, &rights, &name, &created, &expires, &revoked, &hash); err != nil {
		return k, err
	}
	k.Rights, err = apikey.ParseRights(rights)
	if len(hash) != sha256.Size {
		err = errors.Join(err, errors.New("its hash has the wrong length"))
	}
	if err != nil {
		return readKey{apikey.Key{ID: k.ID}, fmt.Errorf("key %s: %w; %w: revoke it and create another", k.ID, errDamaged, err)}, nil
	}
	k.Name, k.Hash = string(name), [sha256.Size]byte(hash)
	k.Created, k.Expires, k.Revoked = fromSecond(created), fromSecond(expires), fromSecond(revoked)
	return k, nil
}

// second is a time as it is stored: 0 for the zero time.
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

func (s apiKeys) Get(ctx context.Context, id string) (_ apikey.Key, err error) {
	if !apikey.IsID(id) {
		return apikey.Key{}, apikey.ErrNotFound
	}
	defer s.db.fail(&err, "APIKey", id)
	k, err := scanKey(s.db.read.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = apikey.ErrNotFound
	}
	if err = errors.Join(err, k.damage); err != nil {
		return apikey.Key{}, err
	}
	return k.Key, nil
}

func (s apiKeys) List(ctx context.Context) iter.Seq2[apikey.Key, error] {
	return func(yield func(apikey.Key, error) bool) {
		all, err := list(ctx, s.db.read, scanKey, `SELECT `+keyColumns+` FROM api_keys ORDER BY id`)
		if err != nil {
			all = []readKey{{damage: err}}
		}
		for _, k := range all {
			s.db.fail(&k.damage, "APIKeys", k.ID)
			if !yield(k.Key, k.damage) {
				return
			}
		}
	}
}

func (s apiKeys) Revoke(ctx context.Context, id string, at time.Time) (err error) {
	defer s.db.fail(&err, "RevokeAPIKey", id)
	return s.db.tx(ctx, "api key revoke", func(tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE api_keys SET revoked = CASE revoked WHEN 0 THEN $1 ELSE revoked END WHERE id = $2`, second(at), id)
		return changed(result, err, apikey.ErrNotFound)
	})
}

// DataKeys stores the data keys that encrypt content, wrapped by a master key.
func (db *DB) DataKeys() keyring.Keys { return dataKeys{db} }

func (db *DB) Keyring() *keyring.Keyring { return db.ring }

func (db *DB) APIKeys() apikey.Store { return apiKeys{db} }

var (
	_ keyring.Keys    = dataKeys{}
	_ keyring.Settler = dataKeys{}
)

// dataKeys implements keyring.Keys. Each tenant has a row in key_owners, which every
// change locks. It outlives the keys and records that they were erased.
type dataKeys struct{ db *DB }

// Load implements keyring.Keys. It has a connection of its own: content is decrypted
// inside transactions, so all other connections may be waiting for a key.
func (k dataKeys) Load(ctx context.Context, tenant string) (keys []keyring.Wrapped, err error) {
	defer k.db.fail(&err, "LoadKeys", tenant)
	if err := errors.Join(ctx.Err(), store.CheckName("tenant", tenant)); err != nil {
		return nil, err
	}
	return k.load(ctx, k.db.keys, tenant)
}

// load reads both tables in one query, so that it never sees half of an erasure.
func (k dataKeys) load(ctx context.Context, q querier, tenant string) ([]keyring.Wrapped, error) {
	keys, err := list(ctx, q, func(scan scan) (keyring.Wrapped, error) {
		var erased bool
		var version, revision, used, created sql.NullInt64
		var master sql.NullString
		w := keyring.Wrapped{Tenant: tenant}
		err := scan(&erased, &version, &revision, &master, &w.Sealed, &used, &created)
		if erased {
			err = keyring.ErrErased
		}
		w.Version, w.Revision, w.Master = int(version.Int64), int(revision.Int64), master.String
		w.Used, w.Created = uint64(used.Int64), time.Unix(created.Int64, 0).UTC()
		return w, err
	}, `SELECT o.erased, k.version, k.revision, k.master, k.sealed, k.used, k.created
		FROM key_owners o LEFT JOIN data_keys k ON k.tenant = o.tenant WHERE o.tenant = $1 ORDER BY k.version`, tenant)
	if len(keys) == 1 && keys[0].Version == 0 {
		keys = nil // the tenant has a row, but no keys
	}
	return keys, err
}

// change runs f in a transaction that has locked the row of the tenant.
func (k dataKeys) change(ctx context.Context, name, tenant string, f func(tx *sql.Tx) error) error {
	if err := errors.Join(ctx.Err(), store.CheckName("tenant", tenant)); err != nil {
		return err
	}
	return k.db.tx(ctx, name, func(tx *sql.Tx) error {
		// An update that changes nothing locks an existing row; a plain insert does not.
		err := exec(ctx, tx, []any{tenant},
			`INSERT INTO key_owners (tenant, erased) VALUES ($1, FALSE) ON CONFLICT (tenant) DO UPDATE SET erased = key_owners.erased`)
		if err != nil {
			return err
		}
		return f(tx)
	})
}

func (k dataKeys) Put(ctx context.Context, w keyring.Wrapped) (err error) {
	defer k.db.fail(&err, "PutKey", w.Tenant)
	return k.change(ctx, "keys", w.Tenant, func(tx *sql.Tx) error {
		held, err := k.load(ctx, tx, w.Tenant)
		if err == nil {
			err = w.Follows(held)
		}
		if err != nil {
			return err
		}
		return exec(ctx, tx, []any{w.Tenant, w.Version, w.Revision, w.Master, w.Sealed, int64(w.Used), w.Created.Unix()},
			`INSERT INTO data_keys (tenant, version, revision, master, sealed, used, created) VALUES (`+marks(1, 7)+`)
			ON CONFLICT (tenant, version) DO UPDATE SET revision = excluded.revision, master = excluded.master, sealed = excluded.sealed, used = excluded.used, created = excluded.created`)
	})
}

func (k dataKeys) Erase(ctx context.Context, tenant string) (err error) {
	defer k.db.fail(&err, "EraseKeys", tenant)
	err = k.change(ctx, "keys erase", tenant, func(tx *sql.Tx) error {
		return exec(ctx, tx, []any{tenant}, `UPDATE key_owners SET erased = TRUE WHERE tenant = $1`, `DELETE FROM data_keys WHERE tenant = $1`)
	})
	if err != nil {
		return err
	}
	return k.Settle(ctx)
}

func (k dataKeys) Settle(ctx context.Context) error {
	if k.db.dialect.SettleKeys == nil {
		return nil
	}
	return k.db.dialect.SettleKeys(ctx, k.db.write)
}

func (k dataKeys) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return k.db.names(ctx, "KeyTenants", `SELECT DISTINCT tenant FROM data_keys ORDER BY tenant`)
}

// names yields the names that a query selects. The query has ended before the first.
func (db *DB) names(ctx context.Context, op, query string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		all, err := column[string](ctx, db.read, query)
		if err != nil {
			db.fail(&err, op, "")
			yield("", err)
			return
		}
		for _, name := range all {
			if !yield(name, nil) {
				return
			}
		}
	}
}
