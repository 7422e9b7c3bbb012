// Package care looks after the data of a store: it checks that all of it fits
// together, moves it from any store to any other, encrypts it anew and takes out
// what is over. It needs nothing but the contracts of package store.
package care

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Options tune what is done with a store; nil or the zero value holds the defaults.
type Options struct {
	// Artifacts holds what is true of artifacts over the store's own backend, with
	// the keys where contents are encrypted. Nil is one without keys, to which
	// encrypted contents are closed: Check cannot look into them, and Export fails.
	Artifacts *artifact.Store
}

func (o *Options) artifacts(db store.DB) *artifact.Store {
	if o != nil && o.Artifacts != nil {
		return o.Artifacts
	}
	return artifact.NewStore(db.Artifacts(), nil)
}

// visitor is what is done on a walk.
type visitor struct {
	// tenant comes before all that the tenant keeps; it may be nil.
	tenant func(tenant string) error
	thread func(tenant string, info store.Info) error
	// An error is about what cannot be read: a kind of documents, an artifact. The
	// walk goes on unless it is returned.
	document func(tenant string, d store.Document, err error) error
	artifact func(tenant string, m artifact.Metadata, err error) error
}

// walk goes through all that a store keeps, without loading threads and contents,
// and passes over tenants whose keys were erased. It returns how many tenants it
// came to and how many it passed over.
func walk(ctx context.Context, db store.DB, v visitor) (tenants, passed int, err error) {
	for tenant, err := range db.Tenants(ctx) {
		if err != nil {
			return tenants, passed, err
		}
		gone, err := erased(ctx, db, tenant)
		switch {
		case err != nil:
			return tenants, passed, err
		case gone:
			passed++
			continue
		}
		tenants++
		if err := v.visit(ctx, db, tenant); err != nil {
			return tenants, passed, err
		}
	}
	return tenants, passed, nil
}

func (v visitor) visit(ctx context.Context, db store.DB, tenant string) error {
	if v.tenant != nil {
		if err := v.tenant(tenant); err != nil {
			return err
		}
	}
	for info, err := range threads(ctx, db.Tenant(tenant)) {
		if err == nil {
			err = v.thread(tenant, info)
		}
		if err != nil {
			return err
		}
	}
	for d, err := range documents(ctx, db.Tenant(tenant)) {
		if err := v.document(tenant, d, err); err != nil {
			return err
		}
	}
	for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: tenant}) {
		if err := v.artifact(tenant, m, err); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return ctx.Err()
}

// erased reports whether the keys of a tenant were erased. A store says so, where
// its keys can be erased at all.
func erased(ctx context.Context, db store.DB, tenant string) (bool, error) {
	k, ok := db.(store.Sealed)
	if !ok {
		return false, nil
	}
	return k.Erased(ctx, tenant)
}

// threads yields all threads of a tenant.
func threads(ctx context.Context, s store.Tenant) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for after := ""; ; {
			page, err := s.Catalog.Threads(ctx, after, store.MaxLimit)
			if err != nil {
				yield(store.Info{}, err)
				return
			}
			for _, info := range page {
				if !yield(info, nil) {
					return
				}
				after = info.ID
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// documents yields all documents of a tenant. A kind that cannot be read comes
// as an error, and the next one follows.
func documents(ctx context.Context, s store.Tenant) iter.Seq2[store.Document, error] {
	return func(yield func(store.Document, error) bool) {
		kinds, err := s.Documents.Kinds(ctx)
		if err != nil {
			yield(store.Document{}, err)
			return
		}
		for _, kind := range kinds {
			for after := ""; ; {
				page, err := s.Documents.Documents(ctx, kind, after, store.DefaultLimit)
				if err != nil {
					if !yield(store.Document{Kind: kind}, err) {
						return
					}
					break
				}
				for _, d := range page {
					if !yield(d, nil) {
						return
					}
					after = d.ID
				}
				if len(page) == 0 {
					break
				}
			}
		}
	}
}

// events yields all events of a thread, up to those that there were when it was
// looked up.
func events(ctx context.Context, s store.Tenant, info store.Info) iter.Seq2[recorded, error] {
	return func(yield func(recorded, error) bool) {
		for n := 0; n < info.Events; {
			page, err := s.Events.Events(ctx, info.ID, n, store.MaxLimit)
			if err == nil && len(page) == 0 {
				err = errors.New("it is missing")
			}
			if err != nil {
				yield(recorded{position: n + 1}, err)
				return
			}
			for _, e := range page[:min(len(page), info.Events-n)] {
				n++
				if !yield(recorded{position: n, Event: e}, nil) {
					return
				}
			}
		}
	}
}

// recorded is an event and its position in its thread.
type recorded struct {
	position int
	event.Event
}

// Counts are how much of each kind there is.
type Counts struct {
	Tenants   int `json:"tenants"`
	Threads   int `json:"threads"`
	Messages  int `json:"messages"`
	Plans     int `json:"plans"`
	Events    int `json:"events"`
	Documents int `json:"documents"`
	Artifacts int `json:"artifacts"`
	// ArtifactBytes is the length of all contents of artifacts.
	ArtifactBytes int64 `json:"artifact_bytes"`
	// Erased counts tenants whose keys were erased: nothing of them can be read,
	// and what is left of them is in none of the other counts.
	Erased int `json:"erased_tenants,omitempty"`
	// Brought counts messages whose id was given by a caller, so that it says
	// nothing about their content.
	Brought int `json:"brought_ids,omitempty"`
}

// Count counts without reading contents, but for those of documents.
func Count(ctx context.Context, db store.DB) (c Counts, err error) {
	c.Tenants, c.Erased, err = walk(ctx, db, visitor{
		thread: func(_ string, info store.Info) error {
			c.Threads++
			c.Messages += info.Messages
			c.Plans += info.Plans
			c.Events += info.Events
			return nil
		},
		document: func(_ string, _ store.Document, err error) error {
			c.Documents++
			return err
		},
		artifact: func(_ string, m artifact.Metadata, err error) error {
			c.Artifacts++
			c.ArtifactBytes += int64(m.Bytes)
			return err
		},
	})
	if err != nil {
		err = fmt.Errorf("care.Count: %w", err)
	}
	return c, err
}
