package river_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/palimpsest-ai/palimpsest/internal/test/jobtest"
	"github.com/palimpsest-ai/palimpsest/job"
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
		q, err := river.OnSQLiteLooking(t.Context(), openSQLite(t, filepath.Join(t.TempDir(), "jobs.db")), h, o, often)
		if err != nil {
			t.Fatal(err)
		}
		return q
	})
}
