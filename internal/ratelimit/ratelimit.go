// Package ratelimit limits rates with token buckets, one for each key. A bucket is full at first and is
// refilled at a steady rate.
package ratelimit

import (
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// Buckets are the buckets by key. They are safe for concurrent use; nil limits nothing.
type Buckets[K comparable] struct {
	most   float64
	period time.Duration
	now    func() time.Time

	mu      sync.Mutex
	buckets *lru.Cache[K, *bucket]
}

type bucket struct {
	tokens float64
	at     time.Time
}

// maxBuckets is how many buckets are kept. The least recently used one is dropped, and would be full
// again.
const maxBuckets = 1 << 14

// New returns buckets of at most `most` tokens; an empty one is full again after the given time. It
// returns nil if most is not above 0.
func New[K comparable](most float64, in time.Duration, now func() time.Time) *Buckets[K] {
	if most <= 0 {
		return nil
	}
	return &Buckets[K]{most: most, period: in, now: now, buckets: lru.New[K, *bucket](maxBuckets)}
}

// Take takes n tokens and returns 0, or takes none and returns how long it will take until there are
// n.
func (b *Buckets[K]) Take(key K, n float64) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.refilled(key)
	if one.tokens < n {
		return time.Duration((n-one.tokens)*float64(b.period)/b.most) + 1
	}
	one.tokens -= n
	return 0
}

// Give puts n tokens back. A negative n takes tokens, and the bucket may go into debt.
func (b *Buckets[K]) Give(key K, n float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.refilled(key)
	one.tokens = min(b.most, one.tokens+n)
}

// refilled returns the bucket of a key, refilled for the time since its last use. The caller holds
// the lock.
func (b *Buckets[K]) refilled(key K) *bucket {
	now := b.now()
	one := b.buckets.GetOrCreate(key, 1, func() *bucket { return &bucket{b.most, now} })
	one.tokens = min(b.most, one.tokens+max(0, now.Sub(one.at).Seconds())/b.period.Seconds()*b.most)
	one.at = now
	return one
}
