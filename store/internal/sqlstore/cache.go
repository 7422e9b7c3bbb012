package sqlstore

import (
	"cmp"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// cache holds the beginnings of threads, weighed in bytes. The database is always asked
// for what was added since.
type cache struct {
	*lru.Cache[name, *cachedThread]
}

type name struct{ tenant, thread string }

// cachedThread is the beginning of a thread and its newest plan, as far as they were
// read. Its lock is held while the database is asked, so that several readers of a thread
// read its rows once. One that was evicted may still be used.
type cachedThread struct {
	name name

	mu        sync.Mutex
	number    int64 // of the thread; 0 before the first read
	thread    *thread.Thread
	plan      *plan.Plan
	version   int // of plan
	planBytes int // size of plan as stored
}

// emptyBytes is about the size of an entry without messages, such as that of a thread
// that does not exist.
const emptyBytes = 512

func newCache(bytes int) cache {
	bytes = cmp.Or(bytes, store.DefaultCacheBytes)
	return cache{lru.New[name, *cachedThread](bytes)}
}

// get returns the entry of a thread, which may be empty.
func (c cache) get(n name) *cachedThread {
	return c.GetOrCreate(n, emptyBytes, func() *cachedThread { return &cachedThread{name: n} })
}

// grew records that k has grown.
func (c cache) grew(k *cachedThread, bytes int) {
	c.Grow(k.name, bytes, func(held *cachedThread) bool { return held == k })
}

// planned records that k has another plan of the given size. The lock of k is held.
func (c cache) planned(k *cachedThread, bytes int) {
	c.grew(k, bytes-k.planBytes)
	k.planBytes = bytes
}

// forgetTenant removes all threads of a tenant.
func (c cache) forgetTenant(tenant string) {
	c.DeleteFunc(func(n name) bool { return n.tenant == tenant })
}

// about resets k if it is about another thread of the same name, which was deleted.
func (k *cachedThread) about(number int64) {
	if k.number != number {
		k.number, k.thread, k.plan, k.version = number, nil, nil, 0
	}
}
