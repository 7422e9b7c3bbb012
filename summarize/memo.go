package summarize

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// memo keeps what was found in messages and how many tokens texts have, so that
// summarising a thread that grew by one step costs that step. It holds at most
// two generations of maxMemo entries each, and of maxMemoBytes; what was not asked
// for during one generation goes. Safe for concurrent use.
type memo struct {
	mu         sync.Mutex
	seed       maphash.Seed
	ready      bool
	now, old   map[factsKey]*facts
	bytes      int // about what now takes
	count, was map[string]int
}

const (
	maxMemo      = 1 << 14
	maxMemoBytes = 32 << 20
)

// factsKey names a message by id and content: ids that callers bring may be
// used again in another thread.
type factsKey struct {
	id   thread.ID
	hash uint64
}

func (c *memo) init() {
	if !c.ready {
		c.ready = true
		c.seed = maphash.MakeSeed()
		c.now, c.count = map[factsKey]*facts{}, map[string]int{}
	}
}

// facts returns the facts of a message, read now if they are not kept.
func (c *memo) facts(m *thread.Message) *facts {
	c.mu.Lock()
	c.init()
	seed := c.seed
	c.mu.Unlock()
	k := factsKey{m.ID, fingerprint(seed, m)}

	c.mu.Lock()
	f, ok := c.now[k]
	if !ok {
		f, ok = c.old[k]
	}
	c.mu.Unlock()
	if !ok {
		f = read(m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, kept := c.now[k]; kept {
		return f
	}
	size := f.size()
	if len(c.now) >= maxMemo || c.bytes+size > maxMemoBytes {
		c.old, c.now, c.bytes = c.now, map[factsKey]*facts{}, 0
	}
	c.now[k] = f
	c.bytes += size
	return f
}

// size is about what facts take, in bytes.
func (f *facts) size() int {
	n := 256 + len(f.user)
	lists := [][]piece{f.rules, f.said, f.recap, nil, nil}
	if f.result != nil {
		lists[3], lists[4] = f.result.errors, f.result.keys
	}
	for _, list := range lists {
		for i := range list {
			n += 64 + len(list[i].text) + 16*cap(list[i].idents)
		}
	}
	return n
}

// tokens returns count(s), computed once while it is kept.
func (c *memo) tokens(count func(string) int, s string) int {
	c.mu.Lock()
	c.init()
	n, ok := c.count[s]
	if ok {
		c.mu.Unlock()
		return n
	}
	n, ok = c.was[s]
	c.mu.Unlock()
	if !ok {
		n = count(s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.count) >= maxMemo {
		c.was, c.count = c.count, map[string]int{}
	}
	c.count[strings.Clone(s)] = n // it is mostly a line of a long text
	return n
}

// fingerprint hashes what the facts of a message depend on.
func fingerprint(seed maphash.Seed, m *thread.Message) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(string(m.Role))
	h.WriteByte(byte(m.Kind))
	var parts func([]thread.Part)
	parts = func(list []thread.Part) {
		for _, p := range list {
			switch p := p.(type) {
			case thread.Text:
				h.WriteByte('t')
				h.WriteString(p.Text)
			case thread.Media:
				h.WriteByte('m')
				h.WriteString(p.Text)
			case thread.Opaque:
				h.WriteByte('o')
				h.WriteString(p.Text)
			case thread.ToolCall:
				h.WriteByte('c')
				h.WriteString(p.ID)
				h.WriteByte(0)
				h.WriteString(p.Name)
				h.WriteByte(0)
				h.WriteString(p.Arguments)
			case thread.ToolResult:
				h.WriteByte('r')
				h.WriteString(p.CallID)
				h.WriteByte(0)
				h.WriteString(p.Tool)
				h.WriteByte(0)
				h.WriteString(string(p.Outcome))
				h.WriteByte(0)
				h.WriteString(p.Structured)
				if len(p.KeyFields) > 0 {
					h.WriteByte(0)
					h.WriteString(p.KeyFields.String())
				}
				parts(p.Content)
			}
			h.WriteByte(0)
		}
	}
	parts(m.Parts)
	return h.Sum64()
}
