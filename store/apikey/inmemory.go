package apikey

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"
)

// Memory is a Store that forgets when the program ends. The zero value is ready
// to use.
type Memory struct {
	mu   sync.RWMutex
	keys map[string]Key
}

// Add implements Store.
func (m *Memory) Add(ctx context.Context, k Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.keys[k.ID]; taken {
		return ErrExists
	}
	if m.keys == nil {
		m.keys = map[string]Key{}
	}
	m.keys[k.ID] = k
	return nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, id string) (Key, error) {
	if err := ctx.Err(); err != nil {
		return Key{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	k, ok := m.keys[id]
	if !ok {
		return Key{}, ErrNotFound
	}
	return k, nil
}

// List implements Store. It yields what was there when it began.
func (m *Memory) List(ctx context.Context) iter.Seq2[Key, error] {
	return func(yield func(Key, error) bool) {
		m.mu.RLock()
		keys := maps.Clone(m.keys)
		m.mu.RUnlock()
		for _, id := range slices.Sorted(maps.Keys(keys)) {
			if err := ctx.Err(); err != nil {
				yield(Key{}, err)
				return
			}
			if !yield(keys[id], nil) {
				return
			}
		}
	}
}

// Revoke implements Store.
func (m *Memory) Revoke(ctx context.Context, id string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[id]
	if !ok {
		return ErrNotFound
	}
	if k.Revoked.IsZero() {
		k.Revoked = at
		m.keys[id] = k
	}
	return nil
}
