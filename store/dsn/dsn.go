// Package dsn opens a store by its name, as a flag or a configuration gives it:
//
//	sqlite:FILE                          one file, for one machine
//	postgres://USER:PASSWORD@HOST/NAME   PostgreSQL 15 or later, for several
//	memory:                              nothing outlives the process
package dsn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// ErrSyntax is wrapped by the error of Open for a name that is none of those of
// the package comment.
var ErrSyntax = errors.New("want sqlite:FILE, memory: or postgres://USER:PASSWORD@HOST/NAME")

// Options tune a store; nil or the zero value holds the defaults. They mean what
// they mean in store/sqlite and store/postgres; memory: has none, and Existing is
// of sqlite: alone.
type Options struct {
	Sealer     store.Sealer
	CacheBytes int
	Now        func() time.Time
	Existing   bool
}

// engine is what stands before the colon, and whose slashes belong to the name.
type engine string

const (
	sqliteEngine   engine = "sqlite"
	postgresEngine engine = "postgres"
	memoryEngine   engine = "memory"
)

func split(name string) (engine, string, bool) {
	scheme, rest, ok := strings.Cut(name, ":")
	if !ok {
		return "", "", false
	}
	switch scheme {
	case "sqlite":
		return sqliteEngine, rest, true
	case "postgres", "postgresql":
		return postgresEngine, rest, true
	case "memory":
		return memoryEngine, rest, true
	}
	return "", "", false
}

// Is reports whether a name is meant for Open, which may still refuse it: it
// begins with what Open knows, or is a URL. Anything else may be the name of a
// folder.
func Is(name string) bool {
	_, _, ok := split(name)
	return ok || strings.Contains(name, "://")
}

// Open opens the store. Its dynamic type is *sqlite.DB, *postgres.DB or *mem.DB.
// The error wraps ErrSyntax, or is that of the store; it never holds a password.
func Open(ctx context.Context, name string, o *Options) (store.DB, error) {
	if o == nil {
		o = &Options{}
	}
	kind, rest, ok := split(name)
	// Results are checked one by one: a nil *DB in an interface is not nil.
	switch {
	case !ok:
		// The whole of it may hold a password.
		scheme, _, colon := strings.Cut(name, ":")
		if !colon {
			return nil, fmt.Errorf("dsn.Open: %q has no scheme: %w", name, ErrSyntax)
		}
		return nil, fmt.Errorf("dsn.Open: %q is not a scheme that is known: %w", scheme, ErrSyntax)
	case kind == memoryEngine && rest != "":
		return nil, fmt.Errorf("dsn.Open: memory: has no name behind it: %w", ErrSyntax)
	case kind == memoryEngine:
		return mem.New(), nil
	case kind == sqliteEngine && strings.HasPrefix(rest, "//"):
		// sqlite:///var/x.db and sqlite://x.db are what people write for files.
		rest = strings.TrimPrefix(rest, "//")
		fallthrough
	case kind == sqliteEngine:
		if rest == "" {
			return nil, fmt.Errorf("dsn.Open: sqlite: names no file: %w", ErrSyntax)
		}
		db, err := sqlite.Open(ctx, rest, &sqlite.Options{Sealer: o.Sealer, CacheBytes: o.CacheBytes, Now: o.Now, Existing: o.Existing})
		if err != nil {
			return nil, err
		}
		return db, nil
	case !strings.HasPrefix(rest, "//"):
		return nil, fmt.Errorf("dsn.Open: postgres: without //: %w", ErrSyntax)
	}
	db, err := postgres.Open(ctx, name, &postgres.Options{Sealer: o.Sealer, CacheBytes: o.CacheBytes, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return db, nil
}
