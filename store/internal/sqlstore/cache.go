package sqlstore

import (
	"container/list"
	"sync"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// cache holds what is known of threads, and forgets what was not used for
// longest. It never answers by itself: a known thread is a beginning that the
// database is asked for the rest of.
type cache struct {
	max int

	mu    sync.Mutex
	size  int
	order list.List // of *known, the newest in front
	at    map[name]*list.Element
}

type name struct{ tenant, thread string }

// known is the beginning of a thread and its newest plan, as far as they were
// read. Its lock is held while the database is asked, so that several readers of
// a thread read its rows once.
type known struct {
	mu      sync.Mutex
	number  int64 // of the thread; 0 for nothing known
	thread  *thread.Thread
	plan    *plan.Plan
	version int // of plan

	name name
	// About what it takes, and what of that is the plan; guarded by the lock of the
	// cache.
	bytes, planBytes int
	dropped          bool
}

// knownBytes is about what is known of a thread that holds nothing, such as one
// that was asked for and is not there.
const knownBytes = 512

func newCache(bytes int) *cache {
	switch {
	case bytes == 0:
		bytes = 64 << 20
	case bytes < 0:
		bytes = 0
	}
	return &cache{max: bytes, at: map[name]*list.Element{}}
}

// get returns what is known of a thread, which may be nothing.
func (c *cache) get(n name) *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[n]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*known)
	}
	k := &known{name: n, bytes: knownBytes}
	c.at[n] = c.order.PushFront(k)
	c.size += knownBytes
	c.fit()
	return k
}

// grew says that k takes more room, and makes room for it. Whoever still uses
// what is forgotten here may go on doing so.
func (c *cache) grew(k *known, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.dropped {
		return
	}
	k.bytes += bytes
	c.size += bytes
	c.fit()
}

// planned says that k holds another plan, of so many bytes.
func (c *cache) planned(k *known, bytes int) {
	c.mu.Lock()
	before := k.planBytes
	k.planBytes = bytes
	c.mu.Unlock()
	c.grew(k, bytes-before)
}

// fit makes room. The thread that was used last stays, however large it is: it
// would be read again, whole, at each step.
func (c *cache) fit() {
	keep := min(c.max, 1)
	for c.size > c.max && c.order.Len() > keep {
		c.drop(c.order.Back())
	}
}

// forget is for a thread that was deleted.
func (c *cache) forget(n name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.at[n]; ok {
		c.drop(e)
	}
}

// forgetTenant is for a tenant whose threads must not be in memory any more.
func (c *cache) forgetTenant(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, e := range c.at {
		if n.tenant == tenant {
			c.drop(e)
		}
	}
}

func (c *cache) drop(e *list.Element) {
	k := e.Value.(*known)
	k.dropped = true
	c.size -= k.bytes
	c.order.Remove(e)
	delete(c.at, k.name)
}

// about makes k be about the thread of that number.
func (k *known) about(number int64) {
	if k.number != number {
		k.number, k.thread, k.plan, k.version = number, nil, nil, 0
	}
}
