package summarize

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// memo keeps what was found in messages and how many tokens texts have, so that
// summarising a thread that grew by one step costs that step. What was not asked for
// longest goes. Safe for concurrent use.
type memo struct {
	ready  sync.Once
	seed   maphash.Seed
	read   *lru.Cache[factsKey, *facts]
	counts *lru.Cache[string, int]
}

const (
	maxMemoBytes = 64 << 20
	maxCounts    = 1 << 15
)

// factsKey names a message by id and content: ids that callers bring may be
// used again in another thread.
type factsKey struct {
	id   thread.ID
	hash uint64
}

func (c *memo) init() {
	c.ready.Do(func() {
		c.seed = maphash.MakeSeed()
		c.read, c.counts = lru.New[factsKey, *facts](maxMemoBytes), lru.New[string, int](maxCounts)
	})
}

// facts returns the facts of a message, read now if they are not kept.
func (c *memo) facts(m *thread.Message) *facts {
	c.init()
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
	c.init()
	n, ok := c.counts.Get(s)
	if !ok {
		n = count(s)
		c.counts.Put(strings.Clone(s), n, 1) // it is mostly a line of a long text
	}
	return n
}
