package postgres_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// TestKeysAreGone: no table of the server holds a data key as an older master key
// wrapped it, or one that was erased. Its journal does, until it is written over.
func TestKeysAreGone(t *testing.T) {
	ctx := t.Context()
	db := open(t, pgtest.Database(t), nil)
	wrapped := func(revision int, master string) keyring.Wrapped {
		return keyring.Wrapped{Tenant: "x", Version: 1, Revision: revision, Master: master, Sealed: bytes.Repeat([]byte(master), 4), Created: time.Unix(1, 0).UTC()}
	}
	holds := func(master string) (n int) {
		if _, err := db.Pool().Exec(ctx, `CHECKPOINT`); err != nil {
			t.Fatal(err)
		}
		err := filepath.WalkDir(pgtest.Current().Directory(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "pg_wal" {
				return fs.SkipDir
			}
			if err == nil && d.Type().IsRegular() {
				var data []byte
				data, err = os.ReadFile(path)
				n += bytes.Count(data, bytes.Repeat([]byte(master), 4))
			}
			if errors.Is(err, fs.ErrNotExist) {
				return nil // files of the server come and go
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	keys := db.DataKeys()
	for n, master := range []string{"first-master", "second-master"} {
		if err := keys.Put(ctx, wrapped(n+1, master)); err != nil {
			t.Fatal(err)
		}
		if holds(master) == 0 {
			t.Error("the test looks in the wrong place")
		}
	}
	if err := keys.(keyring.Settler).Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if n := holds("first-master"); n != 0 {
		t.Errorf("wrapped by the old master key %d times", n)
	}
	if err := keys.Erase(ctx, "x"); err != nil {
		t.Fatal(err)
	}
	if n := holds("second-master"); n != 0 {
		t.Errorf("after Erase the key is there %d times", n)
	}
}
