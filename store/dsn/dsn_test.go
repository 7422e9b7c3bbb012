package dsn_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/dsn"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/postgres/pgtest"
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
		{"", dsn.ErrSyntax, "no scheme"},
		{"palimpsest.db", dsn.ErrSyntax, "sqlite:FILE"},
		{"mysql://u:" + secret + "@h/d", dsn.ErrSyntax, `"mysql"`},
		{"sqlite:", dsn.ErrSyntax, "names no file"},
		{"memory:x", dsn.ErrSyntax, "memory:"},
		{"postgres:u:" + secret + "@h", dsn.ErrSyntax, "//"},
		{"postgres://u:" + secret + "@h:port/d", nil, "cannot be read"},
		{"postgres://u:" + secret + "%zz@h/d", nil, "cannot be read"},
		{"postgres://u:" + secret + "@" + closed.Addr().String() + "/d?sslmode=disable", store.ErrUnavailable, closed.Addr().String()},
		{"sqlite:" + filepath.Join(folder, "none", "p.db"), nil, "there is no folder"},
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

// TestIs tells stores from folders.
func TestIs(t *testing.T) {
	for name, want := range map[string]bool{
		"sqlite:p.db": true, "postgres://h/d": true, "postgresql://h/d": true, "memory:": true, "mysql://u:p@h/d": true,
		"": false, "folder": false, "/abs/folder": false, `C:\folder`: false, "./sqlite:x": false,
	} {
		if got := dsn.Is(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
