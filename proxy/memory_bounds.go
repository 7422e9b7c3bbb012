package proxy

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Memory bounds what proxies hold. It is safe for concurrent use, and may be shared by
// the proxies of many tenants.
//
// What they remember of conversations makes a step cost what it adds. What goes beyond
// the bound is forgotten, the conversation that was used last at the end; its next step
// takes longer, and is found and sent as it would have been. Requests at work are not
// forgotten: where there are too many at once, further ones are answered with 503 and
// Retry-After, on which clients ask again.
type Memory struct {
	index *identify.Index

	sessions *palimpsest.Memory

	mu              sync.Mutex
	freeBodyBytes   int            // for bodies of requests, in bytes
	tenantBodyBytes int            // for those of one tenant
	bodyBytes       map[string]int // by tenant, where it is not 0
	counters        map[string]*token.Counter
}

// MemoryOptions are the bounds of a Memory, in bytes. Zero fields hold the defaults.
type MemoryOptions struct {
	// All bounds what is remembered of conversations, Tenant what is of those of one
	// proxy; 256 MB and 128 MB.
	All, Tenant int
	// Bodies bounds the bodies of the requests that are at work, TenantBodies those of
	// one tenant (Options.Config.Requester); 512 MB, and as much. A request takes several
	// times its body while it is looked into.
	Bodies, TenantBodies int
	// Sessions is what compactions remember between steps, for proxies whose Config
	// has none; nil is one of palimpsest.DefaultMemory.
	Sessions *palimpsest.Memory
}

// NewMemory returns a Memory with these bounds.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = &MemoryOptions{}
	}
	room, sessions := cmp.Or(o.Bodies, 512<<20), o.Sessions
	if sessions == nil {
		sessions = palimpsest.NewMemory(0)
	}
	return &Memory{
		index:         identify.NewIndex(cmp.Or(o.All, 256<<20), cmp.Or(o.Tenant, 128<<20)),
		freeBodyBytes: room, tenantBodyBytes: cmp.Or(o.TenantBodies, room), bodyBytes: map[string]int{},
		counters: map[string]*token.Counter{}, sessions: sessions,
	}
}

// Reserve reserves room for a part of a body of a tenant's; it is false where there is none.
// What was taken is given back with Release.
func (m *Memory) Reserve(tenant string, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.freeBodyBytes < bytes || m.tenantBodyBytes-m.bodyBytes[tenant] < bytes {
		return false
	}
	m.freeBodyBytes -= bytes
	m.bodyBytes[tenant] += bytes
	return true
}

// Release gives it back.
func (m *Memory) Release(tenant string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freeBodyBytes += bytes
	if m.bodyBytes[tenant] -= bytes; m.bodyBytes[tenant] == 0 {
		delete(m.bodyBytes, tenant)
	}
}

// reservation is what one body takes of a Memory. It is safe for concurrent use.
type reservation struct {
	memory *Memory
	tenant string
	held   atomic.Int64
}

func (t *Transport) newReservation() *reservation {
	return &reservation{memory: t.options.Memory, tenant: t.options.Config.Requester.TenantID}
}

func (r *reservation) reserve(bytes int) bool {
	ok := r.memory.Reserve(r.tenant, bytes)
	if ok {
		r.held.Add(int64(bytes))
	}
	return ok
}

// release gives back all that was taken.
func (r *reservation) release() { r.memory.Release(r.tenant, int(r.held.Swap(0))) }

// Bodies is how many bytes of bodies are at work.
func (m *Memory) Bodies() (all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bytes := range m.bodyBytes {
		all += bytes
	}
	return all
}

// Bytes is about what is remembered of conversations to find them again.
func (m *Memory) Bytes() int { return m.index.Bytes() }

// counter is the counter of that name.
func (m *Memory) counter(name string) (*token.Counter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.counters[name]; c != nil {
		return c, nil
	}
	c, err := token.New(name, nil)
	if err == nil {
		m.counters[name] = c
	}
	return c, err
}
