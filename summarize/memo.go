package summarize

import (
	"hash/maphash"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Memory keeps what was found in messages, so that summarising a thread that grew by
// one step costs that step. What was not asked for longest goes. Several summarizers
// may share one. Safe for concurrent use.
type Memory struct {
	seed maphash.Seed
	read *lru.Cache[factsKey, *facts]
}

// DefaultMemory is what a Memory keeps at most where nothing is said, in bytes.
const DefaultMemory = 64 << 20

// NewMemory returns a Memory of about so many bytes; 0 is DefaultMemory.
func NewMemory(bytes int) *Memory {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	return &Memory{seed: maphash.MakeSeed(), read: lru.New[factsKey, *facts](bytes)}
}

// Bytes is about what is kept.
func (c *Memory) Bytes() int {
	_, bytes := c.read.Stats()
	return bytes
}

// factsKey names a message by id and content: ids that callers bring may be
// used again in another thread.
type factsKey struct {
	id   thread.ID
	hash uint64
}

// facts returns the facts of a message, read now if they are not kept.
func (c *Memory) facts(m *thread.Message) *facts {
	k := factsKey{m.ID, m.Fingerprint(c.seed)}
	f, ok := c.read.Get(k)
	if !ok {
		f = read(m)
		c.read.Put(k, f, f.size())
	}
	return f
}

// size is about what facts take, in bytes.
func (f *facts) size() int {
	n := 256 + len(f.user)
	lists := [][]piece{f.rules, f.said, f.recap}
	if f.result != nil {
		lists = append(lists, f.result.errors, f.result.keys, f.result.report)
	}
	for _, list := range lists {
		for i := range list {
			n += 64 + len(list[i].text) + 16*cap(list[i].idents)
		}
	}
	return n
}
