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

// wrap says which function an error is of.
func wrap(err *error, function string) {
	if *err != nil {
		*err = fmt.Errorf("care.%s: %w", function, *err)
	}
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
func walk(ctx context.Context, db store.DB, v visitor) (came, passed int, err error) {
	for t, err := range tenants(ctx, db) {
		if err == nil && t.erased {
			passed++
			continue
		}
		if err == nil {
			came++
			err = v.visit(ctx, db, t.name)
		}
		if err != nil {
			return came, passed, err
		}
	}
	return came, passed, nil
}

func (v visitor) visit(ctx context.Context, db store.DB, tenant string) error {
	if v.tenant != nil {
		if err := v.tenant(tenant); err != nil {
			return err
		}
	}
	s := db.Tenant(tenant)
	for info, err := range pages(func(after store.Info) ([]store.Info, error) {
		return s.Catalog.Threads(ctx, after.ID, store.MaxLimit)
	}) {
		if err == nil {
			err = v.thread(tenant, info)
		}
		if err != nil {
			return err
		}
	}
	kinds, err := s.Documents.Kinds(ctx)
	if err != nil {
		return v.document(tenant, store.Document{}, err)
	}
	for _, kind := range kinds {
		for d, err := range pages(func(after store.Document) ([]store.Document, error) {
			return s.Documents.Documents(ctx, kind, after.ID, store.DefaultLimit)
		}) {
			d.Kind = kind
			if err := v.document(tenant, d, err); err != nil {
				return err
			}
		}
	}
	for m, err := range db.Artifacts().List(ctx, artifact.Filter{TenantID: tenant}) {
		if err := errors.Join(v.artifact(tenant, m, err), ctx.Err()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// owner is a tenant, and whether its keys were erased.
type owner struct {
	name   string
	erased bool
}

// tenants yields those of a store. One of which it is not known whether its keys were
// erased comes with the error.
func tenants(ctx context.Context, db store.DB) iter.Seq2[owner, error] {
	return func(yield func(owner, error) bool) {
		for name, err := range db.Tenants(ctx) {
			t := owner{name: name}
			if k, ok := db.(store.Sealed); ok && err == nil { // else keys cannot be erased at all
				t.erased, err = k.Erased(ctx, name)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// pages yields what next returns behind the last that it returned, until there is no
// more. An error ends it.
func pages[T any](next func(after T) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none, last T
		for {
			page, err := next(last)
			if err != nil {
				yield(none, err)
				return
			}
			for _, value := range page {
				if !yield(value, nil) {
					return
				}
				last = value
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// events yields all events of a thread, up to those that there were when it was
// looked up. An error is about the one that would have been next.
func events(ctx context.Context, s store.Tenant, info store.Info) iter.Seq2[event.Event, error] {
	last := 0
	return pages(func(event.Event) ([]event.Event, error) {
		if last >= info.Events {
			return nil, nil
		}
		page, err := s.Events.Events(ctx, info.ID, last, min(store.MaxLimit, info.Events-last))
		if err == nil && len(page) == 0 {
			err = errors.New("it is missing")
		}
		last += len(page)
		return page, err
	})
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
	defer wrap(&err, "Count")
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
	return c, err
}
