package sqlstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// probeBytes is how much a probe writes: about as much as a step of an agent.
const probeBytes = 64 << 10

// Probe implements store.Prober: it writes a row, and a file if contents are in files, and
// removes them.
func (db *DB) Probe(ctx context.Context) (err error) {
	defer db.fail(&err, "Probe", "")
	if err := db.keyed(ctx); err != nil {
		return err
	}
	content := make([]byte, probeBytes)
	rand.Read(content) // never fails
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error {
		return exec(ctx, tx, []any{rand.Text(), content}, `INSERT INTO probes (id, content) VALUES ($1, $2)`)
	})
	if err != nil {
		return err
	}
	// All rows, also those that a crash has left.
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error { return exec(ctx, tx, nil, `DELETE FROM probes`) })
	if files := db.dialect.Bodies; err == nil && files != nil {
		name := bodyName()
		if err = files.Create(name, content); err == nil {
			err = files.Root.Remove(name)
		}
	}
	return err
}

// keyed returns an error if a master key is missing: every data key must be wrapped by one
// that was given.
func (db *DB) keyed(ctx context.Context) error {
	if len(db.masters) == 0 {
		return db.inTheClear(ctx, db.read)
	}
	ids, err := column[string](ctx, db.read, `SELECT DISTINCT master FROM data_keys`)
	for _, id := range ids {
		if !slices.Contains(db.masters, id) {
			return fmt.Errorf("data keys are wrapped by %s, but the master keys are %v: %w", id, db.masters, keyring.ErrNoMaster)
		}
	}
	return err
}

// inTheClear returns an error if nothing encrypts, but the database has or had data keys.
func (db *DB) inTheClear(ctx context.Context, q querier) error {
	if db.ring != nil {
		return nil
	}
	var keyed bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM key_owners)`).Scan(&keyed)
	if err == nil && keyed {
		err = fmt.Errorf("the database has data keys, so nothing may be written unencrypted: %w", store.ErrSealed)
	}
	return err
}

func (db *DB) Damage(ctx context.Context) (found []string, err error) {
	if db.dialect.Integrity == "" {
		return nil, nil
	}
	defer db.fail(&err, "Damage", "")
	found, err = column[string](ctx, db.read, db.dialect.Integrity)
	return slices.DeleteFunc(found, func(line string) bool { return line == "ok" }), err
}
