package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"

	"github.com/palimpsest-ai/palimpsest/store"
)

// migrate makes all missing migrations, or none. The n-th file makes version n.
func (db *DB) migrate(ctx context.Context) error {
	files, err := fs.Glob(db.dialect.Migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	// Most of the time there is nothing to do, and no lock is needed.
	if at, err := version(ctx, db.read); err == nil && at >= len(files) {
		return newer(at, len(files))
	}
	conn, err := db.write.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	err, end := db.upgrade(ctx, conn, files), "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	if _, ended := conn.ExecContext(context.WithoutCancel(ctx), end); err == nil {
		err = ended
	}
	if err != nil {
		return fmt.Errorf("migrations: %w", err)
	}
	db.step("migrate: committed")
	return nil
}

// upgrade begins a transaction that excludes the migrations of other processes, and makes
// all missing ones. The caller ends it.
func (db *DB) upgrade(ctx context.Context, conn *sql.Conn, files []string) error {
	if err := exec(ctx, conn, nil, db.dialect.Alone...); err != nil {
		return err
	}
	db.step("migrate: begun")
	if err := exec(ctx, conn, nil, db.dialect.Versions); err != nil {
		return err
	}
	db.step("migrate: numbered")
	at, err := version(ctx, conn)
	if err == nil {
		err = newer(at, len(files))
	}
	if err != nil {
		return err
	}
	for ; at < len(files); at++ {
		text, err := fs.ReadFile(db.dialect.Migrations, files[at])
		if err == nil {
			err = exec(ctx, conn, nil, string(text), fmt.Sprintf(`INSERT INTO palimpsest_schema (version_id, is_applied) VALUES (%d, TRUE)`, at+1))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", files[at], err)
		}
	}
	db.step("migrate: written")
	return nil
}

// version reads the number of the last migration. It fails if there are no tables yet.
func version(ctx context.Context, q querier) (at int, err error) {
	err = q.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM palimpsest_schema`).Scan(&at)
	return at, err
}

func newer(at, known int) error {
	if at <= known {
		return nil
	}
	return fmt.Errorf("its version is %d, this program knows up to %d: %w", at, known, store.ErrNewer)
}
