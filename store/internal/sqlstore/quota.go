package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
)

// quota limits how many bytes each tenant stores; most 0 is no limit.
type quota struct {
	most int64
	held *lru.Cache[string, tenantUsage]
}

// tenantUsage is the size of a tenant: as it was measured, plus what was written since.
type tenantUsage struct {
	bytes    int64
	measured time.Time
}

func newQuota(most int64) quota { return quota{most: most, held: lru.New[string, tenantUsage](10_000)} }

// How long a measurement is valid: other processes write too, and deleting makes room.
const (
	measureEvery = time.Minute
	measureFull  = time.Second
)

// room returns an error that wraps store.ErrQuota if the tenant has used up its quota.
func (t *tenant) room(ctx context.Context) error {
	q := t.db.quota
	if q.most <= 0 {
		return nil
	}
	now := t.db.now()
	k, known := q.held.Get(t.id)
	fresh := measureEvery
	if k.bytes >= q.most {
		fresh = measureFull
	}
	if age := now.Sub(k.measured); !known || age < 0 || age >= fresh {
		bytes, err := t.stored(ctx)
		if err != nil {
			return err
		}
		k = tenantUsage{bytes, now}
		q.held.Put(t.id, k, 1)
	}
	if k.bytes >= q.most {
		return fmt.Errorf("tenant %q: %d of %d bytes: %w", t.id, k.bytes, q.most, store.ErrQuota)
	}
	return nil
}

// roomFor is room for an artifact. An existing one may always be replaced, as Reseal does.
func (t *tenant) roomFor(ctx context.Context, artifactID string) error {
	full := t.room(ctx)
	if !errors.Is(full, store.ErrQuota) {
		return full
	}
	var there bool
	err := t.db.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM artifacts WHERE tenant = $1 AND id = $2)`, t.id, artifactID).Scan(&there)
	if err != nil || there {
		return err
	}
	return full
}

// wrote adds what was written to the size of the tenant.
func (t *tenant) wrote(bytes int64) {
	if t.db.quota.most <= 0 {
		return
	}
	// Of two concurrent writes one may not be counted until the next measurement.
	if k, known := t.db.quota.held.Get(t.id); known {
		k.bytes += bytes
		t.db.quota.held.Put(t.id, k, 1)
	}
}

// keeping is sealing for writes that need room and take it.
func (t *tenant) keeping(ctx context.Context, name string, contents int, f func(*sql.Tx, sealer) error) error {
	if err := t.room(ctx); err != nil {
		return err
	}
	return t.counting(ctx, name, contents, f)
}

// counting is sealing for writes that are added to the size of the tenant.
func (t *tenant) counting(ctx context.Context, name string, contents int, f func(*sql.Tx, sealer) error) error {
	bytes := int64(0)
	err := t.sealing(ctx, name, contents, func(tx *sql.Tx, seal sealer) error {
		bytes = 0
		return f(tx, func(at, plain []byte) ([]byte, error) {
			data, err := seal(at, plain)
			bytes += int64(len(data))
			return data, err
		})
	})
	if err == nil {
		t.wrote(bytes)
	}
	return err
}

// stored measures a tenant: contents, without names and indexes.
func (t *tenant) stored(ctx context.Context) (all int64, err error) {
	for _, s := range sealedTables {
		query := `SELECT coalesce(sum(length(content)), 0) FROM ` + s.table + ` WHERE tenant = $1`
		if s.ofThread() {
			query = `SELECT coalesce(sum(length(c.content)), 0) FROM threads t JOIN ` + s.table + ` c ON c.thread = t.number WHERE t.tenant = $1`
		}
		var n int64
		if err := t.db.read.QueryRowContext(ctx, query, t.id).Scan(&n); err != nil {
			return 0, err
		}
		all += n
	}
	metadata, err := column[[]byte](ctx, t.db.read, `SELECT metadata FROM artifacts WHERE tenant = $1`, t.id)
	for _, data := range metadata {
		if m, damage := parseMetadata(data); damage == nil {
			all += int64(m.Bytes)
		}
	}
	return all, err
}
