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
