package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
)

// row is a row of the table of threads.
type row struct {
	number                  int64
	messages, plans, events int
	created, changed        int64
}

const rowColumns = `number, messages, plans, events, created, changed`

func (r *row) scanned() []any {
	return []any{&r.number, &r.messages, &r.plans, &r.events, &r.created, &r.changed}
}

// find reads the row of a thread; it is false if there is none.
func (t *tenant) find(ctx context.Context, q querier, id, lock string) (r row, there bool, err error) {
	there, err = one(ctx, q, r.scanned(), `SELECT `+rowColumns+` FROM threads WHERE tenant = $1 AND name = $2`+lock, t.id, id)
	return r, there, err
}

// lock reads the row of a thread, or creates it, and keeps others from writing to the
// thread.
func (t *tenant) lock(ctx context.Context, tx *sql.Tx, id string) (row, error) {
	for {
		r, ok, err := t.find(ctx, tx, id, t.db.dialect.ForUpdate)
		if ok || err != nil {
			return r, err
		}
		err = exec(ctx, tx, []any{t.id, id, t.db.now().UnixNano()}, `INSERT INTO threads (tenant, name, messages, plans, events, created, changed) VALUES ($1, $2, 0, 0, 0, $3, $3) ON CONFLICT DO NOTHING`)
		if err != nil {
			return row{}, err
		}
	}
}

// touch writes the counts of a thread and when it changed. Its time never goes back.
func (t *tenant) touch(ctx context.Context, tx *sql.Tx, r row) error {
	r.changed = max(r.changed, t.db.now().UnixNano())
	return exec(ctx, tx, []any{r.messages, r.plans, r.events, r.changed, r.number}, `UPDATE threads SET messages = $1, plans = $2, events = $3, changed = $4 WHERE number = $5`)
}

func (r row) info(id string) store.Info {
	return store.Info{
		ID: id, Messages: r.messages, Plans: r.plans, Events: r.events,
		Created: time.Unix(0, r.created).UTC(), Changed: time.Unix(0, r.changed).UTC(),
	}
}

func (t *tenant) Thread(ctx context.Context, id string) (_ store.Info, err error) {
	defer t.db.fail(&err, "Thread", id)
	if err := t.usable(ctx, id); err != nil {
		return store.Info{}, err
	}
	r, ok, err := t.find(ctx, t.db.read, id, "")
	if err == nil && !ok {
		err = fmt.Errorf("thread %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return store.Info{}, err
	}
	return r.info(id), nil
}

func (t *tenant) Threads(ctx context.Context, after string, limit int) (_ []store.Info, err error) {
	defer t.db.fail(&err, "Threads", after)
	if err := t.check(after); err != nil && after != "" {
		return nil, err
	}
	if err := t.living(ctx); err != nil {
		return nil, err
	}
	return list(ctx, t.db.read, func(scan scan) (store.Info, error) {
		var r row
		var id string
		err := scan(append(r.scanned(), &id)...)
		return r.info(id), err
	}, `SELECT `+rowColumns+`, name FROM threads WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3`, t.id, after, store.Limit(limit))
}

func (t *tenant) Delete(ctx context.Context, id string) (err error) {
	defer t.db.fail(&err, "Delete", id)
	if err := t.check(id); err != nil {
		return err
	}
	defer t.db.threads.Delete(name{t.id, id})
	return t.db.removing(ctx, "delete", func(tx *sql.Tx) ([]string, error) {
		if err := t.db.forget(ctx, tx, `tenant = $1 AND name = $2`, t.id, id); err != nil {
			return nil, err
		}
		if err := exec(ctx, tx, []any{t.id, id, []byte{}}, `UPDATE documents SET version = version + 1, content = $3 WHERE tenant = $1 AND id = $2 AND length(content) > 0`); err != nil {
			return nil, err
		}
		return column[string](ctx, tx, `DELETE FROM artifacts WHERE tenant = $1 AND thread = $2 RETURNING body`, t.id, id)
	})
}

func (db *DB) Erase(ctx context.Context, tenantID string) (err error) {
	defer db.fail(&err, "Erase", tenantID)
	if err := store.CheckName("tenant", tenantID); err != nil {
		return err
	}
	defer db.threads.forgetTenant(tenantID)
	return db.removing(ctx, "erase", func(tx *sql.Tx) ([]string, error) {
		if err := db.forget(ctx, tx, `tenant = $1`, tenantID); err != nil {
			return nil, err
		}
		if err := exec(ctx, tx, []any{tenantID}, `DELETE FROM documents WHERE tenant = $1`, `DELETE FROM summaries WHERE tenant = $1`); err != nil {
			return nil, err
		}
		return column[string](ctx, tx, `DELETE FROM artifacts WHERE tenant = $1 RETURNING body`, tenantID)
	})
}

// forget deletes threads, with their messages, plans, marks and events.
func (db *DB) forget(ctx context.Context, tx *sql.Tx, which string, args ...any) error {
	// Every write locks the row of its thread first.
	if _, err := column[int64](ctx, tx, `SELECT number FROM threads WHERE `+which+` ORDER BY name`+db.dialect.ForUpdate, args...); err != nil {
		return err
	}
	var statements []string
	for _, table := range []string{"marks", "messages", "plans", "events"} {
		statements = append(statements, `DELETE FROM `+table+` WHERE thread IN (SELECT number FROM threads WHERE `+which+`)`)
	}
	return exec(ctx, tx, args, append(statements, `DELETE FROM threads WHERE `+which)...)
}

// removing is tx for an f that deletes rows of artifacts and returns the files that they
// named. The files are removed after the commit.
func (db *DB) removing(ctx context.Context, name string, f func(*sql.Tx) (files []string, err error)) error {
	var files []string
	err := db.tx(ctx, name, func(tx *sql.Tx) (err error) {
		files, err = f(tx)
		return err
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		if file != "" {
			db.step(name + ": old file")
			err = errors.Join(err, db.removeBody(file))
		}
	}
	return err
}
