package dsn_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestOpen opens every kind, writes, and reads after opening again.
func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	for _, c := range []struct {
		name string
		want store.DB
	}{
		{"memory:", &mem.DB{}},
		{"sqlite:" + file, &sqlite.DB{}},
		{"sqlite://" + file, &sqlite.DB{}},
	} {
		db, err := dsn.Open(t.Context(), c.name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprintf("%T", db), fmt.Sprintf("%T", c.want); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		address := pgtest.Database(t)
		for n := range 2 {
			db, err := dsn.Open(t.Context(), address, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := db.(*postgres.DB); !ok {
				t.Errorf("%T", db)
			}
			message := thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint(n)}}}
			if th, err := db.Tenant("").Log.Append(t.Context(), "t", n, []thread.Message{message}); err != nil || th.Len() != n+1 {
				t.Errorf("%v, %v", th, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestNames: a name is told for any folder, and which file it means.
func TestNames(t *testing.T) {
	abs := filepath.ToSlash(t.TempDir()) + "/a.db"
	for _, tt := range []struct{ name, in, path string }{
		{"a.db", "/d/a.db", "a.db"},
		{"sqlite:a.db", "sqlite:/d/a.db", "a.db"},
		{"sqlite://a.db", "sqlite:/d/a.db", "a.db"},
		{"sqlite:" + abs, "sqlite:" + abs, abs},
		{"f/", "/d/f/", "f/palimpsest.db"},
		{"memory:", "memory:", ""},
		{"postgres://h/n", "postgres://h/n", ""},
		{"mysql://h/n", "mysql://h/n", ""},
		{"", "", ""},
	} {
		if got := filepath.ToSlash(dsn.In(filepath.FromSlash("/d"), tt.name)); got != tt.in {
			t.Errorf("%s: in /d it is %s, want %s", tt.name, got, tt.in)
		}
		if got := filepath.ToSlash(dsn.Path(tt.name)); got != tt.path {
			t.Errorf("%s: the file is %s, want %s", tt.name, got, tt.path)
		}
	}
}

// TestBadNames: the error says what is wrong, and never what the password is.
func TestBadNames(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	const secret = "hunter2%2F"
	for _, c := range []struct {
		name string
		is   error
		says string
	}{
		{"", dsn.ErrSyntax, "the name of the store is empty"},
		{"mysql://u:" + secret + "@h/d", dsn.ErrSyntax, `"mysql"`},
		{"sqlite:", dsn.ErrSyntax, "names no file"},
		{"memory:x", dsn.ErrSyntax, "memory:"},
		{"postgres:u:" + secret + "@h", dsn.ErrSyntax, "//"},
		{"postgres://u:" + secret + "@h:port/d", nil, "cannot be read"},
		{"postgres://u:" + secret + "%zz@h/d", nil, "cannot be read"},
		{"postgres://u:" + secret + "@" + closed.Addr().String() + "/d?sslmode=disable", store.ErrUnavailable, closed.Addr().String()},
		{"sqlite:" + filepath.Join(folder, "none", "p.db"), nil, "does not exist; create it first"},
		{"sqlite:" + filepath.Join(text, "p.db"), nil, "not a folder"},
		{"sqlite:" + folder, nil, "it is a folder"},
		{"sqlite:" + text, nil, "not a SQLite database"},
	} {
		db, err := dsn.Open(t.Context(), c.name, nil)
		if err == nil {
			t.Errorf("%s: opened", c.name)
			db.Close()
			continue
		}
		if db != nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the password is in %q", err)
		}
	}
}

// TestPaths: a name without a scheme is a file, or a folder with the usual file in
// it. What must be there is not made, and the folder of an earlier form is told.
func TestPaths(t *testing.T) {
	base := t.TempDir()
	there, old := filepath.Join(base, "there"), filepath.Join(base, "old")
	for _, folder := range []string{there, old} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(old, "README.txt"), []byte("palimpsest store, format 1\n\nWhat palimpsest took out"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{
		filepath.Join(base, "a.db"):           filepath.Join(base, "a.db"),
		filepath.Join(base, "no suffix:here"): filepath.Join(base, "no suffix:here"),
		there:                                 filepath.Join(there, dsn.File),
		filepath.Join(base, "made", "two") + string(filepath.Separator): filepath.Join(base, "made", "two", dsn.File),
	} {
		if db, err := dsn.Open(t.Context(), name, &dsn.Options{Existing: true}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, db, err)
		}
		db, err := dsn.Open(t.Context(), name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for _, name := range []string{old, old + string(filepath.Separator)} {
		if db, err := dsn.Open(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), "a store of plain files") {
			t.Errorf("%s: %v, %v", name, db, err)
		}
	}
}
