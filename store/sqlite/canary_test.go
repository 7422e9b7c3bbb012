package sqlite_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

// TestTenants: no tenant is ever told of another, and with keys neither the file
// nor its journal nor the folder of artifacts holds a word of anybody.
// PALIMPSEST_LONG=1 makes it 100,000 operations instead of 3,000. A20
func TestTenants(t *testing.T) {
	operations := 3_000
	if os.Getenv("PALIMPSEST_LONG") != "" {
		operations = 100_000
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "p.db")
	word := storetest.TestCanary(t, func(tb testing.TB, ring *keyring.Keyring) store.DB {
		return open(tb, path, &sqlite.Options{Keyring: ring})
	}, operations)
	journal := false
	for name, data := range contents(t, folder) {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("%s holds what was said", name)
		}
		journal = journal || name == path+"-wal" && len(data) > 0
	}
	if !journal {
		t.Error("there is no journal to look into")
	}
}

// contents reads all files of a folder.
func contents(tb testing.TB, folder string) map[string][]byte {
	tb.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		all[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestEncryptedLater: when a store gets keys and is sealed anew, what was in the
// clear is gone from the file and its journal, also what was deleted before.
func TestEncryptedLater(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.db")
	const canary = "canary" + "-of-plaintext"
	db := open(t, path, nil)
	for _, tenant := range []string{"acme", "b"} {
		storetest.Fill(t, db, tenant, canary)
	}
	// One document is large, and one thread is deleted.
	large := append(append([]byte{'"'}, bytes.Repeat([]byte(canary), 5_000)...), '"')
	if _, err := db.Tenant("acme").Documents.Put(t.Context(), store.Document{Kind: "large", ID: "x", Body: large}); err != nil {
		t.Fatal(err)
	}
	if err := db.Tenant("b").Catalog.Delete(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	found := func() (n int) {
		for _, data := range contents(t, folder) {
			n += bytes.Count(data, []byte(canary))
		}
		return n
	}
	if n := found(); n < 5_000 {
		t.Errorf("in the clear it is found %d times: the test looks in the wrong place", n)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	keyed := open(t, path, &sqlite.Options{Keyring: storetest.NewRing(t)})
	for _, tenant := range []string{"acme", "b"} {
		if _, err := keyed.Reseal(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
	}
	if n := found(); n > 0 {
		t.Errorf("it is still found %d times", n)
	}
}
