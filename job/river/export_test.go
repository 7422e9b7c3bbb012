package river

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/palimpsest-ai/palimpsest/job"
)

// OnSQLiteLease is OnSQLite with another time after which a job that nobody
// speaks for is taken up by another process.
func OnSQLiteLease(ctx context.Context, db *sql.DB, h job.Handlers, o *job.Options, lease time.Duration) (*Queue, error) {
	return begin(ctx, riversqlite.New(db), h, o, lease)
}

// OnPostgresLease is OnSQLiteLease on PostgreSQL.
func OnPostgresLease(ctx context.Context, pool *pgxpool.Pool, h job.Handlers, o *job.Options, lease time.Duration) (*Queue, error) {
	return begin(ctx, riverpgxv5.New(pool), h, o, lease)
}
