package postgres_test

import (
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/postgres/pgtest"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func open(tb testing.TB, address string, o *postgres.Options) *postgres.DB {
	tb.Helper()
	db, err := postgres.Open(tb.Context(), address, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

func TestDB(t *testing.T) {
	storetest.Test(t, func(tb testing.TB) store.DB {
		return open(tb, pgtest.Database(tb), nil)
	})
}

// TestNothingInMemory: without the cache every answer comes from the database.
func TestNothingInMemory(t *testing.T) {
	storetest.Test(t, func(tb testing.TB) store.DB {
		return open(tb, pgtest.Database(tb), &postgres.Options{CacheBytes: -1})
	})
}
