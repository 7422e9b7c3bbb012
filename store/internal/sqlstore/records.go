package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
)

func (t *tenant) Record(ctx context.Context, events ...event.Event) (err error) {
	if len(events) == 0 {
		return nil
	}
	defer t.db.fail(&err, "Record", events[0].ThreadID)
	byThread := map[string][]event.Event{}
	for _, e := range events {
		if err := t.usable(ctx, e.ThreadID); err != nil {
			return err
		}
		byThread[e.ThreadID] = append(byThread[e.ThreadID], e)
	}
	return t.keeping(ctx, "record", len(events), func(tx *sql.Tx, seal sealer) error {
		// All transactions lock threads in the same order.
		for _, id := range slices.Sorted(maps.Keys(byThread)) {
			r, err := t.lock(ctx, tx, id)
			if err == nil {
				err = record(ctx, tx, seal, id, &r, byThread[id])
			}
			if err == nil {
				err = t.touch(ctx, tx, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// record adds events to a thread whose row is locked.
func record(ctx context.Context, tx *sql.Tx, seal sealer, id string, r *row, events []event.Event) error {
	rows := inserter{q: tx, table: "events", columns: []string{"thread", "position", "at", "content"}}
	for _, e := range events {
		r.events++
		plain, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Type, err)
		}
		data, err := seal(rowName("events", id, r.events), plain)
		if err != nil {
			return err
		}
		if err := rows.add(ctx, r.number, r.events, e.Time.Unix(), data); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}

func (t *tenant) Events(ctx context.Context, id string, after, limit int) (_ []event.Event, err error) {
	defer t.db.fail(&err, "Events", id)
	if err := t.usable(ctx, id); err != nil {
		return nil, err
	}
	next := max(after, 0)
	return list(ctx, t.db.read, func(scan scan) (e event.Event, err error) {
		var position int
		var data []byte
		if err := scan(&position, &data); err != nil {
			return e, err
		}
		if next++; position != next {
			return e, fmt.Errorf("event %d is missing: %w", next, errDamaged)
		}
		plain, err := t.open(ctx, rowName("events", id, position), data)
		if err != nil {
			return e, err
		}
		if err := json.Unmarshal(plain, &e); err != nil {
			return e, fmt.Errorf("event %d: %w", position, err)
		}
		e.ThreadID = id
		return e, nil
	}, `SELECT e.position, e.content FROM threads t JOIN events e ON e.thread = t.number WHERE t.tenant = $1 AND t.name = $2 AND e.position > $3 ORDER BY e.position LIMIT $4`, t.id, id, next, store.Limit(limit))
}

// puttable returns an error for a document that cannot be stored, or no longer.
func (t *tenant) puttable(ctx context.Context, d store.Document) error {
	return errors.Join(d.Check(), store.CheckName("tenant", t.id), t.living(ctx))
}

// document reads a document of a kind.
func (t *tenant) document(ctx context.Context, kind string, scan scan) (store.Document, error) {
	d := store.Document{Kind: kind}
	var data []byte
	err := scan(&d.ID, &d.Version, &data)
	if err == nil {
		d.Body, err = t.open(ctx, rowName("documents", kind, d.ID, d.Version), data)
	}
	return d, err
}

func (t *tenant) Document(ctx context.Context, kind, id string) (d store.Document, err error) {
	defer t.db.fail(&err, "Document", kind+"/"+id)
	if err := t.puttable(ctx, store.Document{Kind: kind, ID: id}); err != nil {
		return d, err
	}
	d, err = t.document(ctx, kind, t.db.read.QueryRowContext(ctx, `SELECT id, version, content FROM documents WHERE tenant = $1 AND kind = $2 AND id = $3 AND length(content) > 0`, t.id, kind, id).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Document{}, err
	}
	return d, nil
}

func (t *tenant) Put(ctx context.Context, d store.Document) (version int, err error) {
	defer t.db.fail(&err, "Put", d.Kind+"/"+d.ID)
	if err := t.puttable(ctx, d); err != nil {
		return 0, err
	}
	// Without room a document may still be replaced by one that is no larger, or removed:
	// deleting a thread does both.
	full := t.room(ctx)
	if full != nil && !errors.Is(full, store.ErrQuota) {
		return 0, full
	}
	err = t.counting(ctx, "put", 1, func(tx *sql.Tx, seal sealer) error {
		version, err = t.put(ctx, tx, seal, d, full)
		return err
	})
	return version, err
}

// put writes a document. The error is full, unless that is nil, if the document grows.
func (t *tenant) put(ctx context.Context, tx *sql.Tx, seal sealer, d store.Document, full error) (int, error) {
	// A row of version 0 only serves as a lock; no reader sees it.
	if err := exec(ctx, tx, []any{t.id, d.Kind, d.ID, []byte{}}, `INSERT INTO documents (tenant, kind, id, version, content) VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING`); err != nil {
		return 0, err
	}
	var version, size int
	err := tx.QueryRowContext(ctx, `SELECT version, length(content) FROM documents WHERE tenant = $1 AND kind = $2 AND id = $3`+t.db.dialect.ForUpdate, t.id, d.Kind, d.ID).Scan(&version, &size)
	if err != nil {
		return 0, err
	}
	have := version
	if size == 0 {
		have = 0
	}
	if have != d.Version {
		return 0, &store.ConflictError{Document: d.Kind + "/" + d.ID, Want: d.Version, Have: have}
	}
	version++
	data := []byte{}
	if len(d.Body) > 0 {
		if data, err = seal(rowName("documents", d.Kind, d.ID, version), d.Body); err != nil {
			return 0, err
		}
	}
	if len(data) > size && full != nil {
		return 0, full
	}
	return version, exec(ctx, tx, []any{version, data, t.id, d.Kind, d.ID}, `UPDATE documents SET version = $1, content = $2 WHERE tenant = $3 AND kind = $4 AND id = $5`)
}

func (t *tenant) Documents(ctx context.Context, kind, after string, limit int) (_ []store.Document, err error) {
	defer t.db.fail(&err, "Documents", kind)
	if err := t.puttable(ctx, store.Document{Kind: kind, ID: after}); err != nil {
		return nil, err
	}
	return list(ctx, t.db.read, func(scan scan) (store.Document, error) { return t.document(ctx, kind, scan) },
		`SELECT id, version, content FROM documents WHERE tenant = $1 AND kind = $2 AND id > $3 AND length(content) > 0 ORDER BY id LIMIT $4`, t.id, kind, after, store.Limit(limit))
}

func (t *tenant) Kinds(ctx context.Context) (_ []string, err error) {
	defer t.db.fail(&err, "Kinds", t.id)
	if err := t.living(ctx); err != nil {
		return nil, err
	}
	return column[string](ctx, t.db.read, `SELECT DISTINCT kind FROM documents WHERE tenant = $1 AND length(content) > 0 ORDER BY kind`, t.id)
}

// answers implements store.Answers. Its table is called summaries, after all that it once
// held.
type answers struct{ t *tenant }

func (a answers) Get(ctx context.Context, key string) ([]byte, bool) {
	var data []byte
	there, err := one(ctx, a.t.db.read, []any{&data}, `SELECT content FROM summaries WHERE tenant = $1 AND name = $2`, a.t.id, key)
	if err != nil || !there {
		return nil, false
	}
	plain, err := a.t.open(ctx, rowName("summaries", key), data)
	return plain, err == nil
}

// evictEvery is after how many writes surplus answers are deleted.
const evictEvery = 64

func (a answers) Put(ctx context.Context, key string, value []byte) {
	db := a.t.db
	if db.inTheClear(ctx, db.read) != nil || a.t.room(ctx) != nil {
		return
	}
	seal, err := a.t.reserve(ctx, 1)
	if err != nil {
		return
	}
	data, err := seal(rowName("summaries", key), value)
	if err != nil {
		return
	}
	// The interface returns no errors: a failed write is a missing entry.
	_ = exec(ctx, db.write, []any{a.t.id, key, db.now().UnixNano(), data}, `INSERT INTO summaries (tenant, name, created, content) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, name) DO UPDATE SET created = excluded.created, content = excluded.content`)
	if db.answered.Add(1)%evictEvery == 0 { // the oldest go
		_ = exec(ctx, db.write, []any{a.t.id, store.MaxAnswers}, `DELETE FROM summaries WHERE tenant = $1 AND name NOT IN (SELECT name FROM summaries WHERE tenant = $1 ORDER BY created DESC, name LIMIT $2)`)
	}
}
