// Package care maintains the data of any store: it checks its consistency, exports and
// imports it, encrypts it again under new keys, and deletes what has expired.
//
// Its functions take the artifacts of the store with their keyring; nil are those that are not
// encrypted.
package care

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// contentsOf are the artifacts of a store: those that a caller gives, with a keyring if they are
// encrypted, else without one. Without one, Check reports problems with encrypted artifacts, and
// Export fails.
func contentsOf(db store.DB, given *artifact.Store) *artifact.Store {
	return cmp.Or(given, artifact.NewStore(db.Artifacts(), nil))
}

// wrap adds the name of a function to an error.
func wrap(err *error, function string) {
	if *err != nil {
		*err = fmt.Errorf("care.%s: %w", function, *err)
	}
}

// visitor has the functions that a walk calls.
type visitor struct {
	// tenant is called before the data of the tenant. It may be nil.
	tenant func(tenant string) error
	thread func(tenant string, info store.Info) error
	// These get an error for a kind of documents, or an artifact, that cannot be read.
	// The walk goes on unless they return it.
	document func(tenant string, d store.Document, err error) error
	artifact func(tenant string, m artifact.Metadata, err error) error
}

// walk visits all data of a store without loading threads and contents. It skips tenants
// whose keys were erased, and returns how many tenants it visited and skipped.
func walk(ctx context.Context, db store.DB, v visitor) (visited, skipped int, err error) {
	for t, err := range tenants(ctx, db) {
		if err == nil && t.erased {
			skipped++
			continue
		}
		if err == nil {
			visited++
			err = v.visit(ctx, db, t.name)
		}
		if err != nil {
			return visited, skipped, err
		}
	}
	return visited, skipped, nil
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
			return s.Documents.Documents(ctx, kind, after.ID, 0)
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

// AllThreads lists all threads of a tenant, ordered by id.
func AllThreads(ctx context.Context, c store.Catalog) (all []store.Info, err error) {
	for after := ""; ; after = all[len(all)-1].ID {
		page, err := c.Threads(ctx, after, store.MaxLimit)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
	}
}

// replaced reports whether a thread was deleted, and perhaps begun anew, since info was read:
// what is missing of it is no damage then, and what is there may be that of another.
func replaced(ctx context.Context, s store.Tenant, info store.Info) bool {
	now, err := s.Catalog.Thread(ctx, info.ID)
	return errors.Is(err, store.ErrNotFound) || err == nil && !now.Created.Equal(info.Created)
}

// owner is a tenant, and whether its keys were erased.
type owner struct {
	name   string
	erased bool
}

// tenants yields the tenants of a store, with an error if it cannot be known whether the
// keys of one were erased.
func tenants(ctx context.Context, db store.DB) iter.Seq2[owner, error] {
	return func(yield func(owner, error) bool) {
		for name, err := range db.Tenants(ctx) {
			t := owner{name: name}
			if k, ok := db.(store.Sealed); ok && err == nil { // otherwise keys cannot be erased
				t.erased, err = k.Erased(ctx, name)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// pages yields the values of all pages of a list; next returns the page behind a value. It
// ends at the first error.
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

// events yields the events of a thread that info counts. An error is about the next one.
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

// Counts are the numbers of records by kind.
type Counts struct {
	Tenants   int `json:"tenants"`
	Threads   int `json:"threads"`
	Messages  int `json:"messages"`
	Plans     int `json:"plans"`
	Events    int `json:"events"`
	Documents int `json:"documents"`
	Artifacts int `json:"artifacts"`
	// ArtifactBytes is the total size of artifacts.
	ArtifactBytes int64 `json:"artifact_bytes"`
	// Erased counts tenants whose keys were erased. Their data is in no other count.
	Erased int `json:"erased_tenants,omitempty"`
	// Brought counts messages whose id was given by a caller, so that Check cannot
	// compare it with their content.
	Brought int `json:"brought_ids,omitempty"`
}

// Removed are numbers of what plans removed from prompts. It is in the messages, also where a
// plan gave it the id of an artifact: only some of it is stored as an artifact besides.
type Removed struct {
	// Messages are those that any plan of their thread removed.
	Messages int `json:"removed_messages"`
	// Pointers are the ids of artifacts in plans.
	Pointers int `json:"pointers"`
}

// Count counts records, and what plans removed. It reads no contents, except those of documents and plans.
func Count(ctx context.Context, db store.DB) (c Counts, r Removed, err error) {
	defer wrap(&err, "Count")
	type pointer struct{ tenant, id string }
	pointers := map[pointer]bool{}
	c.Tenants, c.Erased, err = walk(ctx, db, visitor{
		thread: func(tenant string, info store.Info) error {
			c.Threads++
			c.Messages += info.Messages
			c.Plans += info.Plans
			c.Events += info.Events
			s, removed := db.Tenant(tenant), map[thread.ID]bool{}
			for v := 1; v <= info.Plans; v++ {
				p, err := s.Plans.Plan(ctx, info.ID, v)
				if err != nil && replaced(ctx, s, info) {
					break
				}
				if err != nil {
					return err
				}
				for id := range p.Actions() {
					removed[id] = true
				}
				for _, x := range p.Externalized() {
					pointers[pointer{tenant, x.ArtifactID}] = true
				}
			}
			r.Messages += len(removed)
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
	r.Pointers = len(pointers)
	return c, r, err
}
