package keyringtest

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// Memory is keyring.Keys in memory. The zero value is ready to use.
type Memory struct {
	mu      sync.Mutex
	tenants map[string][]keyring.Wrapped // nil after Erase
}

// Load implements keyring.Keys.
func (m *Memory) Load(ctx context.Context, tenant string) ([]keyring.Wrapped, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys, known := m.tenants[tenant]
	if known && keys == nil {
		return nil, keyring.ErrErased
	}
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].Sealed = bytes.Clone(keys[i].Sealed)
	}
	return keys, nil
}

// Put implements keyring.Keys.
func (m *Memory) Put(ctx context.Context, w keyring.Wrapped) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys, known := m.tenants[w.Tenant]
	if known && keys == nil {
		return keyring.ErrErased
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
		m.tenants = map[string][]keyring.Wrapped{}
	}
	m.tenants[w.Tenant] = append(keys, w)
	return nil
}

// Erase implements keyring.Keys.
func (m *Memory) Erase(ctx context.Context, tenant string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tenants == nil {
		m.tenants = map[string][]keyring.Wrapped{}
	}
	m.tenants[tenant] = nil
	return nil
}

// Tenants implements keyring.Keys.
func (m *Memory) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		m.mu.Lock()
		tenants := maps.Clone(m.tenants)
		m.mu.Unlock()
		maps.DeleteFunc(tenants, func(_ string, keys []keyring.Wrapped) bool { return keys == nil })
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
