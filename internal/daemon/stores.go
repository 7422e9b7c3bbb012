package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/store"
)

// Stores are where the daemon keeps things. Each tenant sees only its own;
// tenant "" is the owner of a machine without keys.
type Stores interface {
	Tenant(ctx context.Context, name string) (Tenant, error)
}

// Tenant are the stores of one tenant.
type Tenant struct {
	Log     store.Log
	Plans   store.Plans
	Threads Threads
	// Artifacts keeps what plans externalize.
	Artifacts *artifact.Store
}

// errExists is wrapped by errors about a thread that was created before.
var errExists = errors.New("exists already")

// Threads keeps what is known of threads beside their log. Implementations are
// safe for concurrent use.
type Threads interface {
	// Create keeps a record. The error wraps errExists.
	Create(ctx context.Context, r Record) error
	// Thread returns a record. The error wraps store.ErrNotFound.
	Thread(ctx context.Context, id string) (Record, error)
	// List returns at most limit records with ids behind after, ordered by id.
	List(ctx context.Context, after string, limit int) ([]Record, error)
}

// Record is what is known of a thread beside its log.
type Record struct {
	ID        string
	Labels    map[string]string
	CreatedAt time.Time
}

// Memory keeps everything until the process ends. The zero value is ready.
type Memory struct {
	mu      sync.Mutex
	tenants map[string]Tenant
}

// Tenant implements Stores.
func (m *Memory) Tenant(_ context.Context, name string) (Tenant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tenants[name]
	if !ok {
		kept := &store.Memory{}
		t = Tenant{Log: kept, Plans: kept, Threads: &records{}, Artifacts: artifact.NewStore(mem.New(), nil)}
		if m.tenants == nil {
			m.tenants = map[string]Tenant{}
		}
		m.tenants[name] = t
	}
	return t, nil
}

// records implements Threads in memory, ordered by id.
type records struct {
	mu  sync.Mutex
	all []Record
}

func (r *records) find(id string) (int, bool) {
	return slices.BinarySearchFunc(r.all, id, func(have Record, id string) int { return strings.Compare(have.ID, id) })
}

func (r *records) Create(_ context.Context, rec Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := r.find(rec.ID)
	if found {
		return fmt.Errorf("thread %s %w", rec.ID, errExists)
	}
	r.all = slices.Insert(r.all, at, rec)
	return nil
}

func (r *records) Thread(_ context.Context, id string) (Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := r.find(id)
	if !found {
		return Record{}, fmt.Errorf("thread %s: %w", id, store.ErrNotFound)
	}
	return r.all[at], nil
}

func (r *records) List(_ context.Context, after string, limit int) ([]Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, found := r.find(after)
	if found {
		at++
	}
	return slices.Clone(r.all[at:min(at+limit, len(r.all))]), nil
}
