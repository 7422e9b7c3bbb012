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
	"github.com/palimpsest-ai/palimpsest/store"
)

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
