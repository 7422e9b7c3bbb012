package river

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivermigrate"
)

// lock is the number of the advisory lock that keeps two processes from creating the tables
// of one PostgreSQL database at once, which River does not do: "pljobs" in bytes.
const lock = 0x706c6a6f6273

// migratePostgres creates the tables while no other process does. A connection of its own
// holds the lock, because the pool may have only one.
func migratePostgres(ctx context.Context, pool *pgxpool.Pool, driver riverdriver.Driver[pgx.Tx]) error {
	holder, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("river: creating the tables of the queue: %w", err)
	}
	// This releases the lock, even if the context has ended.
	defer holder.Close(context.WithoutCancel(ctx))
	if _, err := holder.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lock)); err != nil {
		return fmt.Errorf("river: waiting for another process that creates the tables of the queue: %w", err)
	}
	return migrate(ctx, driver, 1)
}

// sqliteTries bounds how often creating the tables is tried. A try fails if another process
// creates them at the same time; the next one finds them further along, and there are six
// steps.
const sqliteTries = 20

func migrate[T any](ctx context.Context, driver riverdriver.Driver[T], tries int) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("river: %w", err)
	}
	for range tries {
		if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("river: creating the tables of the queue: %w", err)
}
