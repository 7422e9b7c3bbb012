package proxy

import (
	"sync"

	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/summarize"
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

	mu          sync.Mutex
	room        int // for bodies of requests, in bytes
	counters    map[string]*token.Counter
	summarizers map[*token.Counter]*summarize.Extractive // each remembers what it found in messages
}

// MemoryOptions are the bounds of a Memory, in bytes. Zero fields hold the defaults.
type MemoryOptions struct {
	// All bounds what is remembered of conversations, Tenant what is of those of one
	// proxy; 256 MB and 128 MB.
	All, Tenant int
	// Bodies bounds the bodies of the requests that are at work; 512 MB. A request takes
	// several times its body while it is looked into.
	Bodies int
}

// NewMemory returns a Memory with these bounds.
func NewMemory(o *MemoryOptions) *Memory {
	if o == nil {
		o = &MemoryOptions{}
	}
	return &Memory{
		index:    identify.NewIndex(or(o.All, 256<<20), or(o.Tenant, 128<<20)),
		room:     or(o.Bodies, 512<<20),
		counters: map[string]*token.Counter{}, summarizers: map[*token.Counter]*summarize.Extractive{},
	}
}

// take takes room for a part of a body; it is false where there is none.
func (m *Memory) take(bytes int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.room < bytes {
		return false
	}
	m.room -= bytes
	return true
}

func (m *Memory) give(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.room += bytes
}

// Bytes is about what is remembered.
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

// summarizer is the one without a model that counts so.
func (m *Memory) summarizer(c *token.Counter) *summarize.Extractive {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.summarizers[c] == nil {
		m.summarizers[c] = &summarize.Extractive{Counter: token.NewLines(c).Text}
	}
	return m.summarizers[c]
}
