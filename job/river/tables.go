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

// lock keeps two processes from making the tables of one PostgreSQL database at
// once, which River leaves to its users: where one does in the middle of what the
// other does, both fail. It is "pljobs" in bytes; the store has a number of its
// own.
const lock = 0x706c6a6f6273

// migratePostgres makes the tables while no other process does. The lock is held
// by a connection of its own, since a pool may have but one.
func migratePostgres(ctx context.Context, pool *pgxpool.Pool, driver riverdriver.Driver[pgx.Tx]) error {
	holder, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("river: making the tables of the queue: %w", err)
	}
	// Its end gives the lock back, whatever became of the context.
	defer holder.Close(context.WithoutCancel(ctx))
	if _, err := holder.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lock)); err != nil {
		return fmt.Errorf("river: waiting for another process that makes the tables of the queue: %w", err)
	}
	return migrate(ctx, driver, 1)
}

// sqliteTries bounds how often the tables are made again because another process
// makes them at the same time: a try that fails for that finds them further along
// the next time, and there are six steps.
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
	return fmt.Errorf("river: making the tables of the queue: %w", err)
}
