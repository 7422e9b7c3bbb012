// Package dsn opens a store by its name, as a flag or a configuration gives it:
//
//	FILE, sqlite:FILE                    one SQLite file, for one machine
//	FOLDER/                              palimpsest.db in it; the slash may be left out if the folder exists
//	postgres://USER:PASSWORD@HOST/NAME   PostgreSQL 15 or later, for several
//	memory:                              lost when the process ends
package dsn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// File is the name of the database in a folder.
const File = "palimpsest.db"

// ErrSyntax is wrapped by the error of Open for a name in no known form.
var ErrSyntax = errors.New("want FILE, sqlite:FILE, memory: or postgres://USER:PASSWORD@HOST/NAME")

// Options configure a store; memory: ignores them.
type Options = store.Options

// Open opens a store, and creates the folder of a name that ends in a slash. It returns a
// *sqlite.DB, *postgres.DB or *mem.DB. The error wraps ErrSyntax or is that of the store;
// it never contains a password.
func Open(ctx context.Context, name string, o *Options) (store.DB, error) {
	engine, rest, named := strings.Cut(name, ":")
	if !named {
		engine = ""
	}
	// Results are checked one by one: a nil *DB in an interface is not nil.
	switch engine {
	case "memory":
		if rest != "" {
			return nil, fmt.Errorf("dsn.Open: memory: takes no name: %w", ErrSyntax)
		}
		return mem.New(), nil
	case "postgres", "postgresql":
		if !strings.HasPrefix(rest, "//") {
			return nil, fmt.Errorf("dsn.Open: postgres: without //: %w", ErrSyntax)
		}
		db, err := postgres.Open(ctx, name, o)
		if err != nil {
			return nil, err
		}
		return db, nil
	}
	file, err := fileOf(name, o != nil && o.Existing)
	if err != nil {
		return nil, fmt.Errorf("dsn.Open: %w", err)
	}
	db, err := sqlite.Open(ctx, file, o)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Path returns the SQLite file that a name means; empty if the store is none or the name is
// wrong. It creates nothing.
func Path(name string) string {
	if engine, _, named := strings.Cut(name, ":"); named && (engine == "memory" || engine == "postgres" || engine == "postgresql") {
		return ""
	}
	file, err := fileOf(name, true)
	if err != nil {
		return ""
	}
	return file
}

// In returns the name that means in any folder what a relative name means in dir.
func In(dir, name string) string {
	prefix, file := "", name
	if rest, ok := strings.CutPrefix(name, "sqlite:"); ok {
		prefix, file = "sqlite:", strings.TrimPrefix(rest, "//")
	} else if scheme().MatchString(name) {
		return name
	}
	if file == "" || filepath.IsAbs(file) {
		return name
	}
	in := filepath.Join(dir, file)
	if os.IsPathSeparator(file[len(file)-1]) { // a folder, as the name says
		in += string(filepath.Separator)
	}
	return prefix + in
}

// scheme matches the start of a name that is not a file: two letters or more, because
// drives have one.
var scheme = lazyregexp.New(`^([[:alpha:]][[:alnum:]+-]+):`)

// fileOf returns the file that a name means. It creates the folder of a new one, unless
// the file must exist.
func fileOf(name string, existing bool) (string, error) {
	if file, ok := strings.CutPrefix(name, "sqlite:"); ok {
		// People also write sqlite:///var/x.db and sqlite://x.db.
		if file = strings.TrimPrefix(file, "//"); file == "" {
			return "", fmt.Errorf("sqlite: names no file: %w", ErrSyntax)
		}
		return file, nil
	}
	if name == "" {
		return "", fmt.Errorf("the name of the store is empty: %w", ErrSyntax)
	}
	if match := scheme().FindStringSubmatch(name); match != nil { // the whole name may contain a password
		return "", fmt.Errorf("%q is not a known scheme: %w", match[1], ErrSyntax)
	}
	info, err := os.Stat(name)
	if there := err == nil && info.IsDir(); !there && !os.IsPathSeparator(name[len(name)-1]) {
		return name, nil
	}
	file := filepath.Join(name, File)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if readme, err := os.ReadFile(filepath.Join(name, "README.txt")); err == nil && strings.HasPrefix(string(readme), "palimpsest store, format 1\n") {
		return "", fmt.Errorf("%s contains a store of plain files from an earlier version, which this one does not read: name another place, or move its files away and compact the conversations again", name)
	}
	if existing {
		return file, nil
	}
	if err := durable.MkdirAll(name); errors.Is(err, fs.ErrPermission) {
		return "", fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	} else if err != nil {
		return "", err
	}
	return file, nil
}
