package river

import (
	"context"
	"database/sql"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/palimpsest-ai/palimpsest/job"
)

// OnSQLiteLease is OnSQLite with another time after which a job that nobody
// speaks for is taken up by another process.
func OnSQLiteLease(ctx context.Context, db *sql.DB, h job.Handlers, o *job.Options, lease time.Duration) (*Queue, error) {
	return onSQLite(ctx, db, h, o, lease)
}

// OnPostgresLease is OnSQLiteLease on PostgreSQL.
func OnPostgresLease(ctx context.Context, pool *pgxpool.Pool, h job.Handlers, o *job.Options, lease time.Duration) (*Queue, error) {
	return onPostgres(ctx, pool, h, o, lease)
}
