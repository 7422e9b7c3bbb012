// Package mem is a store.DB in memory: for tests, and for programs whose data need not
// outlive them.
package mem

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/apikey"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// DB stores everything in memory. Make one with New; it is safe for concurrent use.
type DB struct {
	mu        sync.Mutex
	tenants   map[string]*tenant
	artifacts *artifact.Memory
}

var (
	_ store.DB    = (*DB)(nil)
	_ store.Keyed = (*DB)(nil)
)

// New returns an empty store.
func New() *DB {
	return &DB{tenants: map[string]*tenant{}, artifacts: new(artifact.Memory)}
}

// tenant is a store.Memory with artifacts and answers.
type tenant struct {
	store.Memory
	id        string
	artifacts *artifact.Memory
	answers   answers
}

// Delete also deletes the artifacts of the thread.
func (t *tenant) Delete(ctx context.Context, threadID string) error {
	var failed error
	for m, err := range t.artifacts.List(ctx, artifact.Filter{TenantID: t.id, ThreadID: threadID}) {
		if err == nil && m.ThreadID == threadID {
			_, err = t.artifacts.Delete(ctx, t.id, m.ID, nil)
		}
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	return t.Memory.Delete(ctx, threadID)
}

// Tenant implements store.DB.
func (db *DB) Tenant(id string) store.Tenant {
	db.mu.Lock()
	defer db.mu.Unlock()
	t := db.tenants[id]
	if t == nil {
		t = &tenant{id: id, artifacts: db.artifacts, answers: answers{lru.New[string, []byte](store.MaxAnswers)}}
		db.tenants[id] = t
	}
	return store.Tenant{Log: t, Plans: t, Catalog: t, Events: t, Documents: t, Answers: t.answers}
}

// Tenants implements store.DB.
func (db *DB) Tenants(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		db.mu.Lock()
		known := maps.Clone(db.tenants)
		db.mu.Unlock()
		names := db.artifacts.Tenants()
		for id, t := range known {
			keeps, err := t.keeps(ctx)
			if err != nil {
				yield(id, err)
				return
			}
			if keeps {
				names = append(names, id)
			}
		}
		slices.Sort(names)
		for _, id := range slices.Compact(names) {
			if !yield(id, nil) {
				return
			}
		}
	}
}

func (t *tenant) keeps(ctx context.Context) (bool, error) {
	threads, err := t.Threads(ctx, "", 1)
	if len(threads) > 0 || err != nil {
		return len(threads) > 0, err
	}
	kinds, err := t.Kinds(ctx)
	answers, _ := t.answers.held.Stats()
	return len(kinds)+answers > 0, err
}

// Artifacts implements store.DB.
func (db *DB) Artifacts() artifact.Backend { return db.artifacts }

// APIKeys implements store.Keyed: nobody else could be given a key of what ends with the process.
func (db *DB) APIKeys() apikey.Store { return noKeys{} }

type noKeys struct{}

func (noKeys) Add(context.Context, apikey.Key) error {
	return errors.New("a store in memory keeps no API keys")
}
func (noKeys) Get(context.Context, string) (apikey.Key, error) {
	return apikey.Key{}, apikey.ErrNotFound
}
func (noKeys) List(context.Context) iter.Seq2[apikey.Key, error] {
	return func(func(apikey.Key, error) bool) {}
}
func (noKeys) Revoke(context.Context, string, time.Time) error { return apikey.ErrNotFound }

// Keyring implements store.Keyed: nothing is encrypted in memory.
func (db *DB) Keyring() *keyring.Keyring { return nil }

// Close implements store.DB.
func (db *DB) Close() error { return nil }

type answers struct{ held *lru.Cache[string, []byte] }

func (a answers) Get(_ context.Context, key string) ([]byte, bool) {
	value, ok := a.held.Get(key)
	return bytes.Clone(value), ok
}

func (a answers) Put(_ context.Context, key string, value []byte) {
	a.held.Put(key, bytes.Clone(value), 1)
}
