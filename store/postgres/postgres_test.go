package postgres_test

import (
	"os"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
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
	t.Parallel()
	storetest.Test(t, func(tb testing.TB) store.DB {
		return open(tb, pgtest.Database(tb), nil)
	})
}

// TestNothingInMemory: without the cache every answer comes from the database.
func TestNothingInMemory(t *testing.T) {
	t.Parallel()
	storetest.TestTenant(t, func(tb testing.TB) store.Tenant {
		return open(tb, pgtest.Database(tb), &postgres.Options{CacheBytes: -1}).Tenant("acme")
	})
}

// TestDurable: A14, A15, A20, B8, B11, D8 and D10 outlive the process.
func TestDurable(t *testing.T) {
	t.Parallel()
	storetest.TestDurable(t, func(tb testing.TB) storetest.Open {
		address := pgtest.Database(tb)
		return func(tb testing.TB, ring *keyring.Keyring) store.DB {
			return open(tb, address, &postgres.Options{Keyring: ring})
		}
	})
}
