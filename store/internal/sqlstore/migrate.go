package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/palimpsest-ai/palimpsest/store"
)

// versionTable holds which migrations were made.
const versionTable = "palimpsest_schema"

// migrate brings the tables up to date, all migrations that are missing or none.
func (db *DB) migrate(ctx context.Context) error {
	lock := &migration{db: db}
	provider, err := goose.NewProvider(db.dialect.Goose, db.write, db.dialect.Migrations,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()),
		goose.WithSessionLocker(lock),
		// It opens no transactions of its own: the locker holds one around all.
		goose.WithIsolateDDL(true))
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	sources := provider.ListSources()
	lock.target = sources[len(sources)-1].Version
	// Most of the time there is nothing to do, and nobody needs to be kept away.
	if at, err := version(ctx, db.read); err == nil && at == lock.target {
		return nil
	} else if err == nil && at > lock.target {
		return lock.newer(at)
	}
	// Goose looks whether there is anything to do before it takes the lock, and
	// makes its table then.
	if err := db.makeVersionTable(ctx, lock); err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		// What kept the transaction from being made says more than what goose
		// met afterwards.
		return fmt.Errorf("migrations: %w", errors.Join(lock.refused, err))
	}
	db.step("migrate: committed")
	return nil
}

// makeVersionTable makes the table of versions, as goose makes it, when it is
// not there.
func (db *DB) makeVersionTable(ctx context.Context, lock *migration) error {
	versions, err := database.NewStore(db.dialect.Goose, versionTable)
	if err != nil {
		return err
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := lock.begin(ctx, conn); err != nil {
		return err
	}
	var tables int
	err = conn.QueryRowContext(ctx, db.dialect.HasTable, versionTable).Scan(&tables)
	if err == nil && tables == 0 {
		err = versions.CreateVersionTable(ctx, conn)
	}
	rows := 0
	if err == nil {
		err = conn.QueryRowContext(ctx, `SELECT count(*) FROM `+versionTable).Scan(&rows)
	}
	// Earlier versions could be killed between the table and its first row.
	if err == nil && rows == 0 {
		err = versions.Insert(ctx, conn, database.InsertRequest{Version: 0})
	}
	db.step("migrate: numbered")
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, endErr := conn.ExecContext(ctx, end)
	return errors.Join(err, endErr)
}

// version reads which migration was made last; the error may be that there are
// no tables yet.
func version(ctx context.Context, q querier) (at int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+versionTable).Scan(&at)
	return at, err
}

// migration is the transaction that all migrations are made in. No other
// process makes some beside it.
type migration struct {
	db      *DB
	target  int64
	refused error
}

func (m *migration) newer(at int64) error {
	return fmt.Errorf("it is of version %d, this program knows %d: %w", at, m.target, store.ErrNewer)
}

func (m *migration) begin(ctx context.Context, conn *sql.Conn) error {
	for _, statement := range m.db.dialect.Alone {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// SessionLock implements goose's lock.SessionLocker.
func (m *migration) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := m.begin(ctx, conn); err != nil {
		return err
	}
	m.db.step("migrate: begun")
	at, err := version(ctx, conn)
	if err == nil && at > m.target {
		err = m.newer(at)
	}
	if err != nil {
		m.refused = err
		_, end := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, end)
	}
	return nil
}

// SessionUnlock ends the transaction: it is kept when all migrations were made.
func (m *migration) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	at, err := version(ctx, conn)
	if err != nil || at != m.target {
		_, end := conn.ExecContext(ctx, "ROLLBACK")
		return end // goose says what went wrong
	}
	m.db.step("migrate: written")
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}
