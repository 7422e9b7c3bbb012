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

// Probe implements store.Prober: it writes as others do, takes it away again, and
// writes a file where contents are files.
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
	// All of them: those that a crash has left, too.
	err = db.tx(ctx, "probe", func(tx *sql.Tx) error { return exec(ctx, tx, nil, `DELETE FROM probes`) })
	if files := db.dialect.Bodies; err == nil && files != nil {
		name := bodyName()
		if err = files.Create(name, content); err == nil {
			err = files.Root.Remove(name)
		}
	}
	return err
}

// keyed reports keys that are missing: all data keys must be wrapped by one of the
// master keys, and where there are none there must be no data keys.
func (db *DB) keyed(ctx context.Context) error {
	if len(db.masters) == 0 {
		return db.inTheClear(ctx, db.read)
	}
	ids, err := column[string](ctx, db.read, `SELECT DISTINCT master FROM data_keys`)
	for _, id := range ids {
		if !slices.Contains(db.masters, id) {
			return fmt.Errorf("data keys are wrapped by %s, and there are %v: %w", id, db.masters, keyring.ErrNoMaster)
		}
	}
	return err
}

// inTheClear refuses to write what nothing encrypts where there are data keys, or
// were some.
func (db *DB) inTheClear(ctx context.Context, q querier) error {
	if db.ring != nil {
		return nil
	}
	var keyed bool
	err := q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM key_owners)`).Scan(&keyed)
	if err == nil && keyed {
		err = fmt.Errorf("nothing is written in the clear where there are data keys: %w", store.ErrSealed)
	}
	return err
}

// Damage implements store.Prober.
func (db *DB) Damage(ctx context.Context) (found []string, err error) {
	if db.dialect.Integrity == "" {
		return nil, nil
	}
	defer db.fail(&err, "Damage", "")
	found, err = column[string](ctx, db.read, db.dialect.Integrity)
	return slices.DeleteFunc(found, func(line string) bool { return line == "ok" }), err
}
