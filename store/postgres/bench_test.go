package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// Benchmark uses a server that waits for the disk, unlike that of the tests.
func Benchmark(b *testing.B) {
	s, err := pgtest.Start(&pgtest.Options{Sync: true})
	if err != nil {
		b.Skipf("no PostgreSQL server: %v", err)
	}
	b.Cleanup(func() {
		if err := s.Stop(); err != nil {
			b.Error(err)
		}
	})
	made := 0
	storetest.Benchmark(b, func(tb testing.TB, cold bool, ring *keyring.Keyring) store.DB {
		made++
		schema := fmt.Sprint("bench_", made)
		conn, err := pgx.Connect(tb.Context(), s.Address("postgres"))
		if err != nil {
			tb.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(tb.Context()))
		if _, err := conn.Exec(tb.Context(), "CREATE SCHEMA "+schema); err != nil {
			tb.Fatal(err)
		}
		o := &postgres.Options{Keyring: ring}
		if cold {
			o.CacheBytes = -1
		}
		return open(tb, s.Address("postgres")+"&search_path="+schema, o)
	})
}
