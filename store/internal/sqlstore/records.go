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

// Record implements store.Events.
func (t *tenant) Record(ctx context.Context, events ...event.Event) error {
	byThread := map[string][]event.Event{}
	for _, e := range events {
		if err := t.usable(ctx, e.ThreadID); err != nil {
			return t.db.fail(err, "Record", e.ThreadID)
		}
		byThread[e.ThreadID] = append(byThread[e.ThreadID], e)
	}
	if len(events) == 0 {
		return nil
	}
	err := t.keeping(ctx, "record", len(events), func(tx *sql.Tx, seal sealer) error {
		// Everybody locks threads in the same order.
		for _, id := range slices.Sorted(maps.Keys(byThread)) {
			r, err := t.lock(ctx, tx, id)
			if err != nil {
				return err
			}
			if err := record(ctx, tx, seal, id, &r, byThread[id]); err != nil {
				return err
			}
			if err := t.touch(ctx, tx, r); err != nil {
				return err
			}
		}
		return nil
	})
	return t.db.fail(err, "Record", events[0].ThreadID)
}

// record adds events to a thread that is locked.
func record(ctx context.Context, tx *sql.Tx, seal sealer, id string, r *row, events []event.Event) error {
	rows := inserter{q: tx, table: "events", columns: []string{"thread", "position", "at", "content"}}
	for _, e := range events {
		r.events++
		plain, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Type, err)
		}
		data, err := seal(place("events", id, r.events), plain)
		if err != nil {
			return err
		}
		if err := rows.add(ctx, r.number, r.events, e.Time.Unix(), data); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}

// Events implements store.Events.
func (t *tenant) Events(ctx context.Context, id string, after, limit int) ([]event.Event, error) {
	if err := t.usable(ctx, id); err != nil {
		return nil, t.db.fail(err, "Events", id)
	}
	var page []event.Event
	err := t.db.rows(ctx, t.db.read, func(scan func(...any) error) error {
		var position int
		var data []byte
		if err := scan(&position, &data); err != nil {
			return err
		}
		if want := max(after, 0) + len(page) + 1; position != want {
			return fmt.Errorf("event %d is missing: %w", want, errDamaged)
		}
		plain, err := t.open(ctx, place("events", id, position), data)
		if err != nil {
			return err
		}
		var e event.Event
		if err := json.Unmarshal(plain, &e); err != nil {
			return fmt.Errorf("event %d: %w", position, err)
		}
		e.ThreadID = id
		page = append(page, e)
		return nil
	}, `SELECT e.position, e.content FROM threads t JOIN events e ON e.thread = t.number WHERE t.tenant = $1 AND t.name = $2 AND e.position > $3 ORDER BY e.position LIMIT $4`, t.id, id, max(after, 0), store.Limit(limit))
	if err != nil {
		return nil, t.db.fail(err, "Events", id)
	}
	return page, nil
}

// Document implements store.Documents.
func (t *tenant) Document(ctx context.Context, kind, id string) (store.Document, error) {
	d := store.Document{Kind: kind, ID: id}
	err := errors.Join(d.Check(), store.CheckName("tenant", t.id), t.living(ctx))
	if err == nil {
		var data []byte
		err = t.db.read.QueryRowContext(ctx, `SELECT version, content FROM documents WHERE tenant = $1 AND kind = $2 AND id = $3`, t.id, kind, id).Scan(&d.Version, &data)
		switch {
		case errors.Is(err, sql.ErrNoRows) || err == nil && len(data) == 0:
			err = store.ErrNotFound
		case err == nil:
			d.Body, err = t.open(ctx, place("documents", kind, id, d.Version), data)
		}
	}
	if err != nil {
		return store.Document{}, t.db.fail(err, "Document", kind+"/"+id)
	}
	return d, nil
}

// Put implements store.Documents.
func (t *tenant) Put(ctx context.Context, d store.Document) (version int, err error) {
	err = errors.Join(d.Check(), store.CheckName("tenant", t.id), t.living(ctx))
	if err == nil {
		err = t.keeping(ctx, "put", 1, func(tx *sql.Tx, seal sealer) error {
			version, err = t.put(ctx, tx, seal, d)
			return err
		})
	}
	return version, t.db.fail(err, "Put", d.Kind+"/"+d.ID)
}

func (t *tenant) put(ctx context.Context, tx *sql.Tx, seal sealer, d store.Document) (int, error) {
	// A row of version 0 is there to be locked; nobody has ever read it.
	_, err := tx.ExecContext(ctx, `INSERT INTO documents (tenant, kind, id, version, content) VALUES ($1, $2, $3, 0, $4) ON CONFLICT DO NOTHING`, t.id, d.Kind, d.ID, []byte{})
	if err != nil {
		return 0, err
	}
	var version, size int
	err = tx.QueryRowContext(ctx, `SELECT version, length(content) FROM documents WHERE tenant = $1 AND kind = $2 AND id = $3`+t.db.dialect.ForUpdate, t.id, d.Kind, d.ID).Scan(&version, &size)
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
		if data, err = seal(place("documents", d.Kind, d.ID, version), d.Body); err != nil {
			return 0, err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE documents SET version = $1, content = $2 WHERE tenant = $3 AND kind = $4 AND id = $5`, version, data, t.id, d.Kind, d.ID)
	return version, err
}

// Documents implements store.Documents.
func (t *tenant) Documents(ctx context.Context, kind, after string, limit int) ([]store.Document, error) {
	err := errors.Join(store.Document{Kind: kind, ID: after}.Check(), store.CheckName("tenant", t.id), t.living(ctx))
	if err != nil {
		return nil, t.db.fail(err, "Documents", kind)
	}
	var page []store.Document
	err = t.db.rows(ctx, t.db.read, func(scan func(...any) error) error {
		d := store.Document{Kind: kind}
		var data []byte
		if err := scan(&d.ID, &d.Version, &data); err != nil {
			return err
		}
		plain, err := t.open(ctx, place("documents", kind, d.ID, d.Version), data)
		d.Body = plain
		page = append(page, d)
		return err
	}, `SELECT id, version, content FROM documents WHERE tenant = $1 AND kind = $2 AND id > $3 AND length(content) > 0 ORDER BY id LIMIT $4`, t.id, kind, after, store.Limit(limit))
	if err != nil {
		return nil, t.db.fail(err, "Documents", kind)
	}
	return page, nil
}

// Kinds implements store.Documents.
func (t *tenant) Kinds(ctx context.Context) ([]string, error) {
	var kinds []string
	err := t.db.rows(ctx, t.db.read, func(scan func(...any) error) error {
		var kind string
		err := scan(&kind)
		kinds = append(kinds, kind)
		return err
	}, `SELECT DISTINCT kind FROM documents WHERE tenant = $1 AND length(content) > 0 ORDER BY kind`, t.id)
	return kinds, t.db.fail(err, "Kinds", t.id)
}

// answers is a cache: what fails is not there. Its table is called summaries, as
// it was when that was all it held.
type answers struct{ t *tenant }

var _ store.Answers = answers{}

// Get implements store.Answers.
func (a answers) Get(ctx context.Context, key string) ([]byte, bool) {
	var data []byte
	err := a.t.db.read.QueryRowContext(ctx, `SELECT content FROM summaries WHERE tenant = $1 AND name = $2`, a.t.id, key).Scan(&data)
	if err != nil {
		return nil, false
	}
	plain, err := a.t.open(ctx, place("summaries", key), data)
	return plain, err == nil
}

// evictEvery is how many answers are written before it is looked whether there
// are too many.
const evictEvery = 64

// Put implements store.Answers.
func (a answers) Put(ctx context.Context, key string, value []byte) {
	if a.t.db.inTheClear(ctx, a.t.db.read) != nil || a.t.room(ctx) != nil {
		return
	}
	data, err := a.t.seal(ctx, place("summaries", key), value)
	if err != nil {
		return
	}
	// A cache that cannot be written to has nothing: the contract has no error.
	_, _ = a.t.db.write.ExecContext(ctx, `INSERT INTO summaries (tenant, name, created, content) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, name) DO UPDATE SET created = excluded.created, content = excluded.content`,
		a.t.id, key, a.t.db.now().UnixNano(), data)
	if a.t.db.answered.Add(1)%evictEvery == 0 {
		_ = a.evict(ctx, store.MaxAnswers)
	}
}

// evict removes the oldest answers of the tenant but for so many.
func (a answers) evict(ctx context.Context, most int) error {
	_, err := a.t.db.write.ExecContext(ctx, `DELETE FROM summaries WHERE tenant = $1 AND name NOT IN (SELECT name FROM summaries WHERE tenant = $1 ORDER BY created DESC, name LIMIT $2)`, a.t.id, most)
	return err
}
