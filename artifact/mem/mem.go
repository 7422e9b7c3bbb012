// Package mem keeps artifacts in memory, for tests and for programs that do not need
// them after they end.
package mem

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/artifact"
)

// Backend is an artifact.Backend in memory. Make one with New.
type Backend struct {
	mu      sync.RWMutex
	records map[key]record
}

type key struct{ tenant, id string }

type record struct {
	metadata artifact.Metadata
	content  []byte
}

var _ artifact.Backend = (*Backend)(nil)

// New returns an empty backend.
func New() *Backend { return &Backend{records: map[key]record{}} }

// Put implements artifact.Backend. It keeps a copy of the content.
func (b *Backend) Put(ctx context.Context, m artifact.Metadata, content []byte, c artifact.Condition) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c != nil && !c(b.stored(m.TenantID, m.ID)) {
		return false, nil
	}
	b.records[key{m.TenantID, m.ID}] = record{copied(m), bytes.Clone(content)}
	return true, nil
}

// Get returns a copy of the content.
func (b *Backend) Get(ctx context.Context, tenant, id string) (artifact.Metadata, []byte, error) {
	if err := ctx.Err(); err != nil {
		return artifact.Metadata{}, nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	r, ok := b.records[key{tenant, id}]
	if !ok {
		return artifact.Metadata{}, nil, artifact.ErrNotFound
	}
	return copied(r.metadata), bytes.Clone(r.content), nil
}

// Tenants lists the tenants that have records, by id.
func (b *Backend) Tenants() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := map[string]bool{}
	for k := range b.records {
		names[k.tenant] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// List yields what was there when it began.
func (b *Backend) List(ctx context.Context, f artifact.Filter) iter.Seq2[artifact.Metadata, error] {
	return func(yield func(artifact.Metadata, error) bool) {
		for _, m := range b.matching(f) {
			if err := ctx.Err(); err != nil {
				yield(artifact.Metadata{}, err)
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (b *Backend) matching(f artifact.Filter) []artifact.Metadata {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var found []artifact.Metadata
	for k, r := range b.records {
		if k.tenant == f.TenantID && strings.HasPrefix(k.id, f.Prefix) && (f.ThreadID == "" || r.metadata.ThreadID == f.ThreadID) {
			found = append(found, copied(r.metadata))
		}
	}
	slices.SortFunc(found, func(a, b artifact.Metadata) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// Delete implements artifact.Backend.
func (b *Backend) Delete(ctx context.Context, tenant, id string, c artifact.Condition) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stored := b.stored(tenant, id)
	if stored == nil || c != nil && !c(stored) {
		return false, nil
	}
	delete(b.records, key{tenant, id})
	return true, nil
}

// stored returns a copy of the metadata of a record, or nil. The caller holds the lock.
func (b *Backend) stored(tenant, id string) *artifact.Metadata {
	r, ok := b.records[key{tenant, id}]
	if !ok {
		return nil
	}
	m := copied(r.metadata)
	return &m
}

func copied(m artifact.Metadata) artifact.Metadata {
	m.MessageIDs = slices.Clone(m.MessageIDs)
	return m
}
