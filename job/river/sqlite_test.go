package river_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/jobtest"
	"github.com/palimpsest-ai/palimpsest/job/river"
)

func sqliteName(file string) string {
	return "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_txlock=immediate"
}

func openSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", sqliteName(file))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	jobtest.TestQueue(t, func(t testing.TB, h job.Handlers, o *job.Options) job.Queue {
		q, err := river.OnSQLite(t.Context(), openSQLite(t, filepath.Join(t.TempDir(), "jobs.db")), h, o)
		if err != nil {
			t.Fatal(err)
		}
		return q
	})
}

// TestHandOver: a job that was interrupted when its process stopped is done by
// the next, and the interruption does not count as an attempt.
func TestHandOver(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "jobs.db")
	begun, done := make(chan struct{}), make(chan struct{})
	first, err := river.OnSQLite(t.Context(), openSQLite(t, file), job.Handlers{"work": func(ctx context.Context, _ job.Job) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}}, &job.Options{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Put(t.Context(), job.Job{Kind: "work", Key: "k"}); err != nil {
		t.Fatal(err)
	}
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := first.Stop(ctx); err == nil {
		t.Error("the job was not interrupted")
	}
	second, err := river.OnSQLite(t.Context(), openSQLite(t, file), job.Handlers{"work": func(context.Context, job.Job) error {
		close(done)
		return nil
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if err := second.Wait(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
