package apikeytest

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/store/apikey"
)

// Memory is an apikey.Store in memory. The zero value is ready to use.
type Memory struct {
	mu   sync.RWMutex
	keys map[string]apikey.Key
}

// Add implements apikey.Store.
func (m *Memory) Add(ctx context.Context, k apikey.Key) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.keys[k.ID]; taken {
		return apikey.ErrExists
	}
	if m.keys == nil {
		m.keys = map[string]apikey.Key{}
	}
	m.keys[k.ID] = k
	return nil
}

// Get implements apikey.Store.
func (m *Memory) Get(ctx context.Context, id string) (apikey.Key, error) {
	if err := ctx.Err(); err != nil {
		return apikey.Key{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	k, ok := m.keys[id]
	if !ok {
		return apikey.Key{}, apikey.ErrNotFound
	}
	return k, nil
}

// List implements apikey.Store. It yields what was there when it began.
func (m *Memory) List(ctx context.Context) iter.Seq2[apikey.Key, error] {
	return func(yield func(apikey.Key, error) bool) {
		m.mu.RLock()
		keys := maps.Clone(m.keys)
		m.mu.RUnlock()
		for _, id := range slices.Sorted(maps.Keys(keys)) {
			if err := ctx.Err(); err != nil {
				yield(apikey.Key{}, err)
				return
			}
			if !yield(keys[id], nil) {
				return
			}
		}
	}
}

// Revoke implements apikey.Store.
func (m *Memory) Revoke(ctx context.Context, id string, at time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.keys[id]
	if !ok {
		return apikey.ErrNotFound
	}
	if k.Revoked.IsZero() {
		k.Revoked = at
		m.keys[id] = k
	}
	return nil
}
