package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
)

func (r row) info(id string) store.Info {
	return store.Info{
		ID: id, Messages: r.messages, Plans: r.plans, Events: r.events,
		Created: time.Unix(0, r.created).UTC(), Changed: time.Unix(0, r.changed).UTC(),
	}
}

// Thread implements store.Catalog.
func (t *tenant) Thread(ctx context.Context, id string) (store.Info, error) {
	err := t.check(id)
	if err != nil {
		return store.Info{}, t.db.fail(err, "Thread", id)
	}
	r, ok, err := t.find(ctx, t.db.read, id, "")
	if err == nil && !ok {
		err = fmt.Errorf("thread %s: %w", id, store.ErrNotFound)
	}
	if err != nil {
		return store.Info{}, t.db.fail(err, "Thread", id)
	}
	return r.info(id), nil
}

// Threads implements store.Catalog.
func (t *tenant) Threads(ctx context.Context, after string, limit int) ([]store.Info, error) {
	if err := t.check(after); err != nil && after != "" {
		return nil, t.db.fail(err, "Threads", after)
	}
	var page []store.Info
	err := t.db.rows(ctx, t.db.read, func(scan func(...any) error) error {
		var r row
		var id string
		err := scan(append(r.scanned(), &id)...)
		page = append(page, r.info(id))
		return err
	}, `SELECT `+rowColumns+`, name FROM threads WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3`, t.id, after, store.Limit(limit))
	if err != nil {
		return nil, t.db.fail(err, "Threads", after)
	}
	return page, nil
}

// Delete implements store.Catalog.
func (t *tenant) Delete(ctx context.Context, id string) error {
	return t.db.fail(t.delete(ctx, id), "Delete", id)
}

func (t *tenant) delete(ctx context.Context, id string) error {
	if err := t.check(id); err != nil {
		return err
	}
	var bodies []string
	err := t.db.tx(ctx, "delete", func(tx *sql.Tx) error {
		r, ok, err := t.find(ctx, tx, id, t.db.dialect.ForUpdate)
		if err != nil {
			return err
		}
		if ok {
			for _, table := range []string{"marks", "messages", "plans", "events"} {
				if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE thread = $1`, r.number); err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM threads WHERE number = $1`, r.number); err != nil {
				return err
			}
		}
		if bodies, err = t.db.bodies(ctx, tx, `tenant = $1 AND thread = $2`, t.id, id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM artifacts WHERE tenant = $1 AND thread = $2`, t.id, id); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE documents SET version = version + 1, content = $1 WHERE tenant = $2 AND id = $3 AND length(content) > 0`, []byte{}, t.id, id)
		return err
	})
	if err != nil {
		return err
	}
	t.db.threads.Delete(name{t.id, id})
	for _, body := range bodies {
		err = errors.Join(err, t.db.removeBody(body))
	}
	return err
}

// Erase implements store.Sealed.
func (db *DB) Erase(ctx context.Context, tenantID string) error {
	return db.fail(db.erase(ctx, &tenant{db: db, id: tenantID}), "Erase", tenantID)
}

func (db *DB) erase(ctx context.Context, t *tenant) error {
	if err := store.CheckName("tenant", t.id); err != nil {
		return err
	}
	var bodies []string
	err := db.tx(ctx, "erase", func(tx *sql.Tx) (err error) {
		// Whoever writes to a thread has its row first.
		if err := db.rows(ctx, tx, func(func(...any) error) error { return nil }, `SELECT number FROM threads WHERE tenant = $1 ORDER BY name`+db.dialect.ForUpdate, t.id); err != nil {
			return err
		}
		if bodies, err = db.bodies(ctx, tx, `tenant = $1`, t.id); err != nil {
			return err
		}
		for _, table := range []string{"marks", "messages", "plans", "events"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE thread IN (SELECT number FROM threads WHERE tenant = $1)`, t.id); err != nil {
				return err
			}
		}
		for _, table := range []string{"threads", "documents", "summaries", "artifacts"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE tenant = $1`, t.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	db.threads.forgetTenant(t.id)
	for _, body := range bodies {
		err = errors.Join(err, db.removeBody(body))
	}
	return err
}
