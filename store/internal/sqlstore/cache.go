package sqlstore

import (
	"cmp"
	"sync"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// cache holds what is known of threads, by their weight in bytes. It never answers
// by itself: a known thread is a beginning that the database is asked for the rest of.
type cache struct {
	*lru.Cache[name, *cachedThread]
}

type name struct{ tenant, thread string }

// cachedThread is the beginning of a thread and its newest plan, as far as they were
// read. Its lock is held while the database is asked, so that several readers of
// a thread read its rows once. Whoever still uses one that is forgotten may go on
// doing so.
type cachedThread struct {
	name name

	mu        sync.Mutex
	number    int64 // of the thread; 0 for nothing known
	thread    *thread.Thread
	plan      *plan.Plan
	version   int // of plan
	planBytes int // about what plan takes
}

// knownBytes is about what is known of a thread that holds nothing, such as one
// that was asked for and is not there.
const knownBytes = 512

func newCache(bytes int) cache {
	bytes = cmp.Or(bytes, store.DefaultCacheBytes)
	return cache{lru.New[name, *cachedThread](bytes)}
}

// get returns what is known of a thread, which may be nothing.
func (c cache) get(n name) *cachedThread {
	return c.GetOrCreate(n, knownBytes, func() *cachedThread { return &cachedThread{name: n} })
}

// grew says that k takes more room.
func (c cache) grew(k *cachedThread, bytes int) {
	c.Grow(k.name, bytes, func(held *cachedThread) bool { return held == k })
}

// planned says that k, whose lock is held, holds another plan, of so many bytes.
func (c cache) planned(k *cachedThread, bytes int) {
	c.grew(k, bytes-k.planBytes)
	k.planBytes = bytes
}

// forgetTenant is for a tenant whose threads must not be in memory any more.
func (c cache) forgetTenant(tenant string) {
	c.DeleteFunc(func(n name) bool { return n.tenant == tenant })
}

// about makes k be about the thread of that number.
func (k *cachedThread) about(number int64) {
	if k.number != number {
		k.number, k.thread, k.plan, k.version = number, nil, nil, 0
	}
}
