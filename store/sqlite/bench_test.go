package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func Benchmark(b *testing.B) {
	storetest.Benchmark(b, func(tb testing.TB, cold bool, ring *keyring.Keyring) store.DB {
		o := &sqlite.Options{Keyring: ring}
		if cold {
			o.CacheBytes = -1
		}
		return open(tb, filepath.Join(tb.TempDir(), "p.db"), o)
	})
}
