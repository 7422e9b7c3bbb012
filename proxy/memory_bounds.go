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

	mu       sync.Mutex
	room     int            // for bodies of requests, in bytes
	each     int            // for those of one tenant
	held     map[string]int // by tenant, where it is not 0
	counters map[string]*token.Counter
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
		index: identify.NewIndex(cmp.Or(o.All, 256<<20), cmp.Or(o.Tenant, 128<<20)),
		room:  room, each: cmp.Or(o.TenantBodies, room), held: map[string]int{},
		counters: map[string]*token.Counter{}, sessions: sessions,
	}
}

// Take takes room for a part of a body of a tenant's; it is false where there is none.
// What was taken is given back with Give.
func (m *Memory) Take(tenant string, bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.room < bytes || m.each-m.held[tenant] < bytes {
		return false
	}
	m.room -= bytes
	m.held[tenant] += bytes
	return true
}

// Give gives room back.
func (m *Memory) Give(tenant string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room += bytes
	if m.held[tenant] -= bytes; m.held[tenant] == 0 {
		delete(m.held, tenant)
	}
}

// room is what one body takes of a Memory. It is safe for concurrent use.
type room struct {
	memory *Memory
	tenant string
	held   atomic.Int64
}

func (t *Transport) room() *room {
	return &room{memory: t.options.Memory, tenant: t.options.Config.Requester.TenantID}
}

func (r *room) take(bytes int) bool {
	ok := r.memory.Take(r.tenant, bytes)
	if ok {
		r.held.Add(int64(bytes))
	}
	return ok
}

// giveBack gives back all that was taken.
func (r *room) giveBack() { r.memory.Give(r.tenant, int(r.held.Swap(0))) }

// Bodies is how many bytes of bodies are at work.
func (m *Memory) Bodies() (all int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bytes := range m.held {
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
