package postgres_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestTenants: no tenant is ever told of another, and with keys no file of the
// server, its journal and its log among them, holds a word of anybody.
// PALIMPSEST_LONG=1 makes it 30,000 operations instead of 3,000. A20
func TestTenants(t *testing.T) {
	operations := 3_000
	if os.Getenv("PALIMPSEST_LONG") != "" {
		operations = 30_000
	}
	address := pgtest.Database(t)
	var last *postgres.DB
	word := storetest.TestCanary(t, func(tb testing.TB, ring *keyring.Keyring) store.DB {
		last = open(tb, address, &postgres.Options{Keyring: ring})
		return last
	}, operations)
	if _, err := last.Pool().Exec(t.Context(), `CHECKPOINT`); err != nil {
		t.Fatal(err)
	}
	// Names are in the clear, so that the test can see that it looks in the right
	// place.
	names := 0
	err := filepath.WalkDir(pgtest.Current().Directory(), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // files of the server come and go
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(data, []byte("acme/..")) {
			names++
		}
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("%s holds what was said", path)
		}
		return err
	})
	if err != nil || names < 2 {
		t.Errorf("%d files with names of tenants, %v", names, err)
	}
}
