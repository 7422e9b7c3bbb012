package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func problems(tb testing.TB, db store.DB) []string {
	tb.Helper()
	var all []string
	if _, err := care.Check(tb.Context(), db, func(p care.Problem) { all = append(all, p.String()) }, nil); err != nil {
		tb.Fatal(err)
	}
	return all
}

// TestCareTellsDamage: each kind of damage is told, with its place.
func TestCareTellsDamage(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "p.db")
	first, err := sqlite.Open(t.Context(), whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	storetest.FillAll(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ change, says string }{
		{`UPDATE messages SET content = x'00' WHERE position = 3`, `acme: thread long: the log: .*messages/4:long/1:3.*damaged`},
		{`DELETE FROM messages WHERE position = 700`, `thread long: the log: .*700 messages of 701`},
		{`UPDATE messages SET id = 'x' WHERE position = 0`, `thread t: the log: .*damaged`},
		{`UPDATE plans SET content = (SELECT content FROM plans p WHERE p.thread = plans.thread AND p.version = 1)`, `plan 2: its pointer|marked as compacted`},
		{`DELETE FROM plans WHERE version = 1`, `thread t: plan 1: .*not found`},
		{`UPDATE plans SET content = x'01'`, `plan 1: .*damaged`},
		{`DELETE FROM marks`, `message .* is marked as compacted since plan 0`},
		{`INSERT INTO marks SELECT number, 7, 1 FROM threads WHERE name = 'long'`, `2 messages are marked as compacted, plan 3 covers 1`},
		{`DELETE FROM events WHERE position = 1`, `thread long: event 1: .*missing`},
		{`UPDATE events SET content = x'01'`, `event 1: .*damaged`},
		{`UPDATE documents SET content = x'01'`, `documents of kind memory: .*damaged`},
		{`UPDATE artifacts SET checksum = 1`, `artifact art_[0-9a-f]+: .*checksum`},
		{`UPDATE artifacts SET metadata = x'00'`, `artifact art_[0-9a-f]+: .*damaged`},
		{`UPDATE artifacts SET body = 'aa/bb' WHERE body <> ''`, `artifact art_[0-9a-f]+: .*damaged`},
	} {
		path := filepath.Join(t.TempDir(), "p.db")
		data, err := os.ReadFile(whole)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err == nil {
			err = os.CopyFS(path+"-artifacts", os.DirFS(whole+"-artifacts"))
		}
		if err != nil {
			t.Fatal(err)
		}
		db := open(t, path, &sqlite.Options{CacheBytes: -1})
		if _, err := db.SQL().Exec(c.change); err != nil {
			t.Fatalf("%s: %v", c.change, err)
		}
		all := problems(t, db)
		if text := strings.Join(all, "\n"); !regexp.MustCompile(c.says).MatchString(text) {
			t.Errorf("%s:\n%s", c.change, text)
		}
	}
}

// TestMove: from any store to any other and back, everything is the same byte
// for byte.
func TestMove(t *testing.T) {
	ctx := t.Context()
	var first bytes.Buffer
	want, err := care.Export(ctx, storetest.FillAll(t, mem.New()), &first, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, db := range map[string]store.DB{
		"mem": mem.New(), "sqlite": open(t, filepath.Join(folder, "a.db"), nil),
		"sealed": open(t, filepath.Join(folder, "b.db"), &sqlite.Options{Keyring: storetest.NewRing(t), CacheBytes: -1}),
	} {
		for range 2 { // the second time there is nothing left to do
			got, err := care.Import(ctx, db, bytes.NewReader(first.Bytes()), nil, nil)
			if err != nil || got != want {
				t.Fatalf("%s: %+v, %v, want %+v", name, got, err, want)
			}
		}
		if all := problems(t, db); len(all) > 0 {
			t.Errorf("%s: %v", name, all)
		}
		var again bytes.Buffer
		if _, err := care.Export(ctx, db, &again, nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.Bytes(), first.Bytes()) {
			a, b := firstDifference(first.String(), again.String())
			t.Errorf("%s: the export of the import is another:\n%.300s\n%.300s", name, a, b)
		}
		th, err := db.Tenant("acme").Log.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		before := mem.New()
		storetest.Fill(t, before, "acme", "said by acme")
		wanted, err := before.Tenant("acme").Log.Load(ctx, "t")
		if err != nil {
			t.Fatal(err)
		}
		storetest.Same(t, th, wanted)
	}
}

func firstDifference(a, b string) (string, string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for n := range x {
		if n >= len(y) || x[n] != y[n] {
			return x[n], strings.Join(y[n:min(n+1, len(y))], "")
		}
	}
	return "", ""
}

// TestCareTellsSealedDamage: with the keys the check looks into what is sealed;
// without them it says that it cannot.
func TestCareTellsSealedDamage(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "p.db")
	ring := storetest.NewRing(t)
	db := open(t, path, &sqlite.Options{Keyring: ring, CacheBytes: -1})
	s := artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring})
	m := artifact.Metadata{TenantID: "acme", ThreadID: "t"}
	id, err := s.Put(ctx, m, "one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Put(ctx, m, "two")
	if err != nil {
		t.Fatal(err)
	}
	check := func(o *artifact.Store) (all []string) {
		t.Helper()
		if _, err := care.Check(ctx, db, func(p care.Problem) { all = append(all, p.String()) }, o); err != nil {
			t.Fatal(err)
		}
		return all
	}
	keyed := s
	if all := check(keyed); len(all) > 0 {
		t.Errorf("%q", all)
	}
	if all := check(nil); len(all) != 2 || !strings.Contains(all[0], "no keys were given") {
		t.Errorf("without keys: %q", all)
	}
	// What was sealed for the one stands in the place of the other.
	held, _, err := db.Artifacts().Get(ctx, "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	_, stolen, err := db.Artifacts().Get(ctx, "acme", other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Artifacts().Put(ctx, held, stolen, nil); err != nil {
		t.Fatal(err)
	}
	if all := check(keyed); len(all) != 1 || !strings.Contains(all[0], id) {
		t.Errorf("with a content in the place of another: %q", all)
	}
}
