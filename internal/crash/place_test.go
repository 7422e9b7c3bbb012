package crash_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// place is where a store is. It goes to other processes as JSON.
type place struct {
	// Store is the name of the store, for dsn.Open.
	Store string
	// Folder is where other stores may be made.
	Folder string
	Master string
}

// opened is a store with everything that is sealed by its keys.
type opened struct {
	db        store.DB
	artifacts *artifact.Store
	ring      *keyring.Keyring
}

// open opens the place as a process does that starts.
func (p place) open(ctx context.Context) (*opened, error) {
	masters, err := keyring.ParseMasters(p.Master)
	if err != nil {
		return nil, err
	}
	db, err := dsn.Open(ctx, p.Store, &dsn.Options{Masters: masters})
	if err != nil {
		return nil, err
	}
	ring := db.(store.Keyed).Keyring()
	return &opened{db: db, ring: ring, artifacts: artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: ring})}, nil
}

func (o *opened) close() error { return o.db.Close() }

// another is a place beside this one, whose store has not been made yet.
func (p place) another(ctx context.Context, name string) (place, error) {
	u, err := url.Parse(p.Store)
	if err != nil {
		return p, err
	}
	if u.Scheme == "sqlite" {
		p.Store = "sqlite:" + filepath.Join(p.Folder, name+".db")
		return p, nil
	}
	conn, err := pgx.Connect(ctx, p.Store)
	if err != nil {
		return p, err
	}
	defer conn.Close(ctx)
	q := u.Query()
	schema := q.Get("search_path") + "_" + name
	if _, err := conn.Exec(ctx, fmt.Sprintf(`CREATE SCHEMA IF NOT EXISTS %s`, pgx.Identifier{schema}.Sanitize())); err != nil {
		return p, err
	}
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	p.Store = u.String()
	return p, nil
}
