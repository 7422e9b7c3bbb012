package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func user(text string) []thread.Message {
	return []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}
}

// TestCanary: with keys no file holds what was said; without them they do, so
// that it is known where to look. A20
func TestCanary(t *testing.T) {
	for _, ring := range []*keyring.Keyring{nil, storetest.NewRing(t)} {
		folder := t.TempDir()
		db, err := sqlite.Open(t.Context(), filepath.Join(folder, "p.db"), &sqlite.Options{Keyring: ring})
		if err != nil {
			t.Fatal(err)
		}
		canary := "canary" + "-of-plaintext"
		storetest.Fill(t, db, "acme", canary)
		found := 0
		look := func() {
			err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				found += bytes.Count(data, []byte(canary))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		look()
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		look()
		if ring == nil && found == 0 || ring != nil && found != 0 {
			t.Errorf("encrypted: %v, found %d times", ring != nil, found)
		}
	}
}

// TestNewer: a database of a later version is refused and left as it is.
func TestNewer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	db := open(t, path, nil)
	if _, err := db.SQL().Exec(`INSERT INTO palimpsest_schema (version_id, is_applied) VALUES (99, 1)`); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, nil)
	if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "99") {
		t.Errorf("%v", err)
	}
}

// TestFull: a write that finds no room says so, what was acknowledged stays, and
// writing goes on when there is room again.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	db := open(t, path, nil)
	if _, err := db.SQL().Exec(`PRAGMA max_page_count = 60`); err != nil {
		t.Fatal(err)
	}
	fillUp(t, db, path, func() {
		if _, err := db.SQL().Exec(`PRAGMA max_page_count = 100000`); err != nil {
			t.Fatal(err)
		}
	})
}

// fillUp writes until there is no room, then makes room and goes on.
func fillUp(t *testing.T, db *sqlite.DB, path string, room func()) {
	t.Helper()
	ctx, log := t.Context(), db.Tenant("").Log
	kept := 0
	var err error
	for ; kept < 1000 && err == nil; kept++ {
		_, err = log.Append(ctx, "t", kept, user(fmt.Sprint(kept, strings.Repeat(" much", 1000))))
	}
	if kept--; !errors.Is(err, store.ErrFull) || kept < 3 {
		t.Fatalf("after %d messages: %v", kept, err)
	}
	if th, err := log.Load(ctx, "t"); err != nil || th.Len() != kept {
		t.Errorf("%v, %v; %d were acknowledged", th, err, kept)
	}
	if th, err := open(t, path, nil).Tenant("").Log.Load(ctx, "t"); err != nil || th.Len() != kept {
		t.Errorf("opened again: %v, %v", th, err)
	}
	room()
	if th, err := log.Append(ctx, "t", kept, user("there is room")); err != nil || th.Len() != kept+1 {
		t.Errorf("%v, %v", th, err)
	}
}

// TestClock: a clock that goes back changes no order, and no time of a thread
// goes back.
func TestClock(t *testing.T) {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	db := open(t, filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{Now: func() time.Time { return now }})
	s := db.Tenant("")
	for n := range 5 {
		if _, err := s.Log.Append(t.Context(), "t", n, user(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		info, err := s.Catalog.Thread(t.Context(), "t")
		if want := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC); err != nil || !info.Created.Equal(want) || !info.Changed.Equal(want) {
			t.Errorf("%+v, %v", info, err)
		}
		now = now.Add(-time.Hour)
	}
	th, err := s.Log.Load(t.Context(), "t")
	if err != nil || th.Len() != 5 || th.At(4).Text() != "4" {
		t.Errorf("%v, %v", th, err)
	}
}

// TestDamage: a changed byte is an error that names the message, never another
// text.
func TestDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.db")
	db := open(t, path, nil)
	th, err := db.Tenant("").Log.Append(t.Context(), "t", 0, user("one"))
	if err != nil {
		t.Fatal(err)
	}
	id := string(th.At(0).ID)
	for _, change := range []string{
		`UPDATE messages SET content = CAST(replace(CAST(content AS TEXT), 'one', 'two') AS BLOB)`,
		`UPDATE messages SET content = x'7b7d'`,
		`UPDATE messages SET content = x''`,
		`UPDATE messages SET position = 1`,
		`DELETE FROM messages`,
	} {
		if _, err := db.SQL().Exec(change); err != nil {
			t.Fatal(err)
		}
		_, err := open(t, path, nil).Tenant("").Log.Load(t.Context(), "t")
		if err == nil || !strings.Contains(err.Error(), "damaged") || strings.Contains(change, "content =") && !strings.Contains(err.Error(), id) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// TestBodies: large contents are files, which come and go with their rows.
func TestBodies(t *testing.T) {
	ctx, folder := t.Context(), t.TempDir()
	db := open(t, filepath.Join(folder, "p.db"), nil)
	b := db.Artifacts()
	files := func() (list []string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(folder, "p.db-artifacts"), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				list = append(list, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	put := func(m artifact.Metadata, size int) {
		t.Helper()
		if _, err := b.Put(ctx, m, bytes.Repeat([]byte{'x'}, size), nil); err != nil {
			t.Fatal(err)
		}
	}
	m := artifact.Metadata{ID: "art_0", ThreadID: "t"}
	for _, step := range []struct{ size, files int }{{10, 0}, {200_000, 1}, {300_000, 1}, {10, 0}, {200_000, 1}} {
		put(m, step.size)
		if got := files(); len(got) != step.files {
			t.Errorf("%d bytes: files %v", step.size, got)
		}
	}
	// A file without a row is removed when it is old.
	stray := filepath.Join(folder, "p.db-artifacts", "ab", "abcd")
	if err := errors.Join(os.MkdirAll(filepath.Dir(stray), 0o700), os.WriteFile(stray, []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := db.Vacuum(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := db.Leftovers(ctx); err != nil || len(left) != 1 || left[0] != "ab/abcd" || len(files()) != 2 {
		t.Errorf("leftovers %v, %v, files %v", left, err, files())
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.Chtimes(stray, old, old), db.Vacuum(ctx)); err != nil {
		t.Fatal(err)
	}
	if _, content, err := b.Get(ctx, "", m.ID); err != nil || len(content) != 200_000 || len(files()) != 1 {
		t.Errorf("%d bytes, %v, files %v", len(content), err, files())
	}
	// Damage is told.
	if err := os.WriteFile(files()[0], []byte("y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(ctx, "", m.ID); !errors.Is(err, artifact.ErrCorrupt) {
		t.Errorf("a changed file: %v", err)
	}
	if err := os.Remove(files()[0]); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(ctx, "", m.ID); !errors.Is(err, artifact.ErrCorrupt) {
		t.Errorf("a lost file: %v", err)
	}
	if _, err := b.Delete(ctx, "", m.ID, nil); err != nil {
		t.Error(err)
	}
}

// TestSaidOnce: an error says once what is wrong with a file, and still wraps its cause.
func TestSaidOnce(t *testing.T) {
	folder := t.TempDir()
	whole := filepath.Join(folder, "whole.db")
	db, err := sqlite.Open(t.Context(), whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, test := range []struct {
		path, says, not string
		cause           error
	}{
		{write("text.db", bytes.Repeat([]byte("no database\n"), 100)), "SQLite database", "file is not a database", nil},
		{write("half.db", data[:len(data)/2]), "is damaged", "", nil},
		{filepath.Join(folder, "none", "p.db"), "does not exist", "no such file", fs.ErrNotExist},
	} {
		_, err := sqlite.Open(t.Context(), test.path, nil)
		if err == nil {
			t.Errorf("%s: opened", test.path)
			continue
		}
		if text := err.Error(); strings.Count(text, test.says) != 1 || test.not != "" && strings.Contains(text, test.not) || test.cause != nil && !errors.Is(err, test.cause) {
			t.Errorf("%s: %v", test.path, err)
		}
	}
}
