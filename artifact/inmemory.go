package artifact

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a Backend in memory, for tests and for programs that do not need artifacts after they
// end. Its zero value is empty.
type Memory struct {
	mu      sync.RWMutex
	records map[key]record
}

type key struct{ tenant, id string }

type record struct {
	metadata Metadata
	content  []byte
}

var _ Backend = (*Memory)(nil)

// Put implements Backend. It keeps a copy of the content.
func (b *Memory) Put(ctx context.Context, m Metadata, content []byte, c Condition) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c != nil && !c(b.stored(m.TenantID, m.ID)) {
		return false, nil
	}
	if b.records == nil {
		b.records = map[key]record{}
	}
	b.records[key{m.TenantID, m.ID}] = record{copied(m), bytes.Clone(content)}
	return true, nil
}

// Get returns a copy of the content.
func (b *Memory) Get(ctx context.Context, tenant, id string) (Metadata, []byte, error) {
	if err := ctx.Err(); err != nil {
		return Metadata{}, nil, err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	r, ok := b.records[key{tenant, id}]
	if !ok {
		return Metadata{}, nil, ErrNotFound
	}
	return copied(r.metadata), bytes.Clone(r.content), nil
}

// Tenants lists the tenants that have records, by id.
func (b *Memory) Tenants() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	names := map[string]bool{}
	for k := range b.records {
		names[k.tenant] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// List yields what was there when it began.
func (b *Memory) List(ctx context.Context, f Filter) iter.Seq2[Metadata, error] {
	return func(yield func(Metadata, error) bool) {
		for _, m := range b.matching(f) {
			if err := ctx.Err(); err != nil {
				yield(Metadata{}, err)
				return
			}
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (b *Memory) matching(f Filter) []Metadata {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var found []Metadata
	for k, r := range b.records {
		if k.tenant == f.TenantID && strings.HasPrefix(k.id, f.Prefix) && (f.ThreadID == "" || r.metadata.ThreadID == f.ThreadID) {
			found = append(found, copied(r.metadata))
		}
	}
	slices.SortFunc(found, func(a, b Metadata) int { return strings.Compare(a.ID, b.ID) })
	return found
}

// Delete implements Backend.
func (b *Memory) Delete(ctx context.Context, tenant, id string, c Condition) (bool, error) {
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
func (b *Memory) stored(tenant, id string) *Metadata {
	r, ok := b.records[key{tenant, id}]
	if !ok {
		return nil
	}
	m := copied(r.metadata)
	return &m
}

func copied(m Metadata) Metadata {
	m.MessageIDs = slices.Clone(m.MessageIDs)
	return m
}
