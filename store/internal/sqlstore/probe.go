package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/keyring"
	"github.com/palimpsest-ai/palimpsest/store"
)

// probeBytes is how much a probe writes: about what a step of an agent adds.
const probeBytes = 64 << 10

// Probe implements store.Prober.
func (db *DB) Probe(ctx context.Context) error {
	err := db.keyed(ctx)
	if err == nil {
		err = db.probe(ctx)
	}
	return db.fail(err, "Probe", "")
}

// keyed reports keys that are missing: all data keys must be wrapped by one of the
// master keys, and where there are none there must be no data keys.
func (db *DB) keyed(ctx context.Context) error {
	if db.ring == nil {
		return db.inTheClear(ctx, db.read)
	}
	return db.rows(ctx, db.read, func(scan func(...any) error) error {
		var id string
		if err := scan(&id); err != nil {
			return err
		}
		if !slices.Contains(db.masters, id) {
			return fmt.Errorf("data keys are wrapped by %s, and there are %v: %w", id, db.masters, keyring.ErrNoMaster)
		}
		return nil
	}, `SELECT DISTINCT master FROM data_keys`)
}

// inTheClear refuses to write what nothing encrypts where there are data keys, or
// were some.
func (db *DB) inTheClear(ctx context.Context, q querier) error {
	if db.sealer != nil {
		return nil
	}
	var keyed bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM key_owners)`).Scan(&keyed)
	if err == nil && keyed {
		err = fmt.Errorf("nothing is written in the clear where there are data keys: %w", store.ErrSealed)
	}
	return err
}

// probe writes as others do, takes it away again, and writes a file where contents
// are files.
func (db *DB) probe(ctx context.Context) error {
	id := rand.Text()
	content := make([]byte, probeBytes)
	rand.Read(content) // never fails
	err := db.tx(ctx, "probe", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO probes (id, content) VALUES ($1, $2)`, id, content)
		return err
	})
	if err != nil {
		return err
	}
	// All of them: those that a crash has left, too.
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM probes`)
		return err
	})
	if files := db.dialect.Bodies; err == nil && files != nil {
		name := bodyName()
		if err = files.Create(name, content); err == nil {
			err = files.Root.Remove(name)
		}
	}
	return err
}

// Damage implements store.Prober.
func (db *DB) Damage(ctx context.Context) (found []string, err error) {
	if db.dialect.Integrity == "" {
		return nil, nil
	}
	err = db.rows(ctx, db.read, func(scan func(...any) error) error {
		var line string
		err := scan(&line)
		if err == nil && line != "ok" {
			found = append(found, line)
		}
		return err
	}, db.dialect.Integrity)
	return found, db.fail(err, "Damage", "")
}
