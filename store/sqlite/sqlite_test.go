package sqlite_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func open(tb testing.TB, path string, o *sqlite.Options) *sqlite.DB {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), path, o)
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
	name := "a b%20?#.db"
	if runtime.GOOS == "windows" {
		name = "a b%20#.db" // a file there has no question mark
	}
	storetest.Test(t, func(tb testing.TB) store.DB {
		return open(tb, filepath.Join(tb.TempDir(), name), nil)
	})
}

// TestNothingInMemory: without the cache every answer comes from the file.
func TestNothingInMemory(t *testing.T) {
	t.Parallel()
	storetest.TestTenant(t, func(tb testing.TB) store.Tenant {
		return open(tb, filepath.Join(tb.TempDir(), "p.db"), &sqlite.Options{CacheBytes: -1}).Tenant("acme")
	})
}

// TestDurable: A14, A15, A20, B8, B11, D8 and D10 outlive the process.
func TestDurable(t *testing.T) {
	t.Parallel()
	storetest.TestDurable(t, func(tb testing.TB) storetest.Open {
		path := filepath.Join(tb.TempDir(), "p.db")
		return func(tb testing.TB, ring *keyring.Keyring) store.DB {
			return open(tb, path, &sqlite.Options{Keyring: ring})
		}
	})
}

// TestQuota: see storetest.
func TestQuota(t *testing.T) {
	t.Parallel()
	storetest.TestQuota(t, open(t, filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{TenantBytes: 10_000}))
}
