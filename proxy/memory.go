package proxy

import (
	"sync"

	"github.com/palimpsest-ai/palimpsest/proxy/identify"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Memory bounds what proxies remember of conversations, so that a step costs what it
// adds. What goes beyond it is forgotten, the conversation that was used last at the
// end; its next step takes longer, and is found and sent as it would have been. It is
// safe for concurrent use.
type Memory struct {
	index *identify.Index

	mu          sync.Mutex
	counters    map[string]*token.Counter
	summarizers map[*token.Counter]*summarize.Extractive // each remembers what it found in messages
}

// The bounds of a Memory, in bytes, where none are given.
const (
	DefaultMemory       = 256 << 20
	DefaultTenantMemory = 128 << 20
)

// NewMemory bounds memory to about so many bytes over all proxies that share it, and
// for each of them; 0 stands for the defaults.
func NewMemory(all, each int) *Memory {
	return &Memory{
		index:    identify.NewIndex(or(all, DefaultMemory), or(each, DefaultTenantMemory)),
		counters: map[string]*token.Counter{}, summarizers: map[*token.Counter]*summarize.Extractive{},
	}
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
