package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func masters(t *testing.T) keyring.Masters {
	t.Helper()
	m, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFailsClosed: where there are data keys nothing is written without the master
// key, for no tenant, and a probe says so.
func TestFailsClosed(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "p.db")
	right := masters(t)
	sealed := open(t, path, &sqlite.Options{Masters: right})
	if _, err := sealed.Tenant("acme").Log.Append(ctx, "t", 0, user("one")); err != nil {
		t.Fatal(err)
	}
	if err := sealed.Probe(ctx); err != nil {
		t.Error(err)
	}
	db := open(t, path, nil)
	if err := db.Probe(ctx); !errors.Is(err, store.ErrSealed) {
		t.Errorf("probe without the key: %v", err)
	}
	if err := open(t, path, &sqlite.Options{Masters: masters(t)}).Probe(ctx); !errors.Is(err, keyring.ErrNoMaster) {
		t.Errorf("probe with another key: %v", err)
	}
	for _, tenant := range []string{"acme", "other", ""} {
		s := db.Tenant(tenant)
		_, appended := s.Log.Append(ctx, "new", 0, user("canary-in-the-clear"))
		_, put := s.Documents.Put(ctx, store.Document{Kind: "k", ID: "d", Body: []byte(`"canary-in-the-clear"`)})
		_, small := db.Artifacts().Put(ctx, artifact.Metadata{ID: "art_0", TenantID: tenant}, []byte("canary-in-the-clear"), nil)
		_, large := db.Artifacts().Put(ctx, artifact.Metadata{ID: "art_1", TenantID: tenant}, []byte(strings.Repeat("canary-in-the-clear", 10_000)), nil)
		for name, err := range map[string]error{
			"append": appended, "document": put, "artifact": small, "large artifact": large,
			"event": s.Events.Record(ctx, event.Event{ThreadID: "t", Type: "x"}),
		} {
			if !errors.Is(err, store.ErrSealed) {
				t.Errorf("tenant %q: %s: %v", tenant, name, err)
			}
		}
		s.Answers.Put(ctx, "key", []byte("canary-in-the-clear"))
		if _, there := s.Answers.Get(ctx, "key"); there {
			t.Errorf("tenant %q: an answer was kept", tenant)
		}
	}
	if th, err := sealed.Tenant("acme").Log.Load(ctx, "t"); err != nil || th.Len() != 1 {
		t.Errorf("%v, %v", th, err)
	}
	for name, data := range contents(t, filepath.Dir(path)) {
		if strings.Contains(string(data), "canary-in-the-clear") {
			t.Errorf("%s holds clear text", name)
		}
	}
}

// TestGone: what is written to a file that was removed, moved or replaced is not
// acknowledged, and a probe says so.
func TestGone(t *testing.T) {
	ctx := t.Context()
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
		},
		"journal":  func(path string) error { return os.Remove(path + "-wal") },
		"contents": func(path string) error { return os.RemoveAll(path + "-artifacts") },
	} {
		path := filepath.Join(t.TempDir(), "p.db")
		db := open(t, path, nil)
		if _, err := db.Tenant("").Log.Append(ctx, "t", 0, user("one")); err != nil {
			t.Fatal(err)
		}
		if err := db.Probe(ctx); err != nil {
			t.Fatalf("%s: before: %v", name, err)
		}
		if err := harm(path); err != nil {
			t.Fatal(err)
		}
		if err := db.Probe(ctx); !errors.Is(err, store.ErrGone) {
			t.Errorf("%s: probe: %v", name, err)
		}
		if _, err := db.Tenant("").Log.Append(ctx, "t", 1, user("two")); !errors.Is(err, store.ErrGone) {
			t.Errorf("%s: a write was acknowledged: %v", name, err)
		}
		if th, err := db.Tenant("").Log.Load(ctx, "t"); err == nil && th.Len() != 1 || err != nil && !errors.Is(err, store.ErrGone) {
			t.Errorf("%s: %v, %v", name, th, err)
		}
	}
}

// TestProbeFull: a probe finds no room, and room again.
func TestProbeFull(t *testing.T) {
	ctx := t.Context()
	db := open(t, filepath.Join(t.TempDir(), "p.db"), nil)
	pages := func(n string) {
		t.Helper()
		if _, err := db.SQL().Exec(`PRAGMA max_page_count = ` + n); err != nil {
			t.Fatal(err)
		}
	}
	pages("1")
	if err := db.Probe(ctx); !errors.Is(err, store.ErrFull) {
		t.Errorf("no room: %v", err)
	}
	pages("100000")
	if err := db.Probe(ctx); err != nil {
		t.Errorf("room: %v", err)
	}
	var left int
	if err := db.SQL().QueryRow(`SELECT count(*) FROM probes`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d probes are left, %v", left, err)
	}
}

// readable opens a store that cannot be written to, and proves that it is read and
// that no write is acknowledged.
func readable(t *testing.T, path string, want error) {
	t.Helper()
	ctx := t.Context()
	if _, err := sqlite.Open(ctx, path, nil); !errors.Is(err, want) {
		t.Errorf("to write: %v", err)
	}
	db, err := sqlite.Open(ctx, path, &sqlite.Options{Readable: true})
	if err != nil {
		t.Fatalf("to read: %v", err)
	}
	defer db.Close()
	if th, err := db.Tenant("").Log.Load(ctx, "t"); err != nil || th.Len() != 1 {
		t.Errorf("%v, %v", th, err)
	}
	if err := db.Probe(ctx); !errors.Is(err, want) {
		t.Errorf("probe: %v", err)
	}
	if _, err := db.Tenant("").Log.Append(ctx, "t", 1, user("two")); !errors.Is(err, want) {
		t.Errorf("append: %v", err)
	}
}

// closed makes a store with one message and closes it.
func closed(t *testing.T, path string) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, nil)
	if err == nil {
		_, err = db.Tenant("").Log.Append(t.Context(), "t", 0, user("one"))
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestReadable: a file without the right to write to it is served for reading.
func TestReadable(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "p.db")
	closed(t, path)
	if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o700)
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		f.Close()
		t.Skip("the rights of files do not bind this user; TestReadOnlyFolder locks a file system")
	}
	readable(t, path, store.ErrReadOnly)
}

// TestDamageFound: what the engine's own check finds is found, where reading every
// row would not show it.
func TestDamageFound(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "p.db")
	db := open(t, path, nil)
	for n := range 50 {
		if _, err := db.Tenant("").Log.Append(ctx, "t", n, []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "one"}}}}); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := db.Damage(ctx); err != nil || len(found) != 0 {
		t.Fatalf("whole: %q, %v", found, err)
	}
	// An index that has lost rows of its table.
	for _, statement := range []string{
		`CREATE INDEX lost ON messages (id)`, `PRAGMA writable_schema = 1`,
		`UPDATE sqlite_master SET sql = 'CREATE INDEX lost ON messages (content)' WHERE name = 'lost'`, `PRAGMA writable_schema = RESET`,
	} {
		if _, err := db.SQL().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	var found []care.Problem
	counts, err := care.Check(ctx, open(t, path, nil), func(p care.Problem) { found = append(found, p) }, nil)
	if err != nil || counts.Messages != 50 || len(found) == 0 {
		t.Errorf("damaged: %d messages, %v, %v", counts.Messages, found, err)
	}
	for _, p := range found {
		if p.Where != "the database" {
			t.Errorf("%v", p)
		}
	}
}
