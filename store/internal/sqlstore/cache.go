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

	name    name
	bytes   int // about what it takes; guarded by the lock of the cache
	dropped bool
}

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
	k := &known{name: n}
	c.at[n] = c.order.PushFront(k)
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
	for c.size > c.max && c.order.Len() > 0 {
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
