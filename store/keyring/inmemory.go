package keyring

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Memory is Keys in memory: when the program ends they are lost, with everything that was
// sealed with them. The zero value is ready to use.
type Memory struct {
	mu      sync.Mutex
	tenants map[string][]Wrapped // nil after Erase
}

// Load implements Keys.
func (m *Memory) Load(ctx context.Context, tenant string) ([]Wrapped, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys, known := m.tenants[tenant]
	if known && keys == nil {
		return nil, ErrErased
	}
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].Sealed = bytes.Clone(keys[i].Sealed)
	}
	return keys, nil
}

// Put implements Keys.
func (m *Memory) Put(ctx context.Context, w Wrapped) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys, known := m.tenants[w.Tenant]
	if known && keys == nil {
		return ErrErased
	}
	if err := w.Follows(keys); err != nil {
		return err
	}
	w.Sealed = bytes.Clone(w.Sealed)
	if w.Version <= len(keys) {
		keys[w.Version-1] = w
		return nil
	}
	if m.tenants == nil {
		m.tenants = map[string][]Wrapped{}
	}
	m.tenants[w.Tenant] = append(keys, w)
	return nil
}

// Erase implements Keys.
func (m *Memory) Erase(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenants == nil {
		m.tenants = map[string][]Wrapped{}
	}
	m.tenants[tenant] = nil
	return nil
}

// Tenants implements Keys.
func (m *Memory) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		m.mu.Lock()
		tenants := maps.Clone(m.tenants)
		m.mu.Unlock()
		maps.DeleteFunc(tenants, func(_ string, keys []Wrapped) bool { return keys == nil })
		for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
			if err := ctx.Err(); err != nil {
				yield("", err)
				return
			}
			if !yield(tenant, nil) {
				return
			}
		}
	}
}
