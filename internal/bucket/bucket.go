// Package bucket bounds how much each of many may use in a time. Each has a bucket of
// tokens that is full at first and is filled at a steady rate; what is used is taken
// out.
package bucket

import (
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// Buckets are the buckets by key. They are safe for concurrent use; nil bounds
// nothing.
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

// maxBuckets is of how many keys buckets are held: who has not asked for longest
// begins anew.
const maxBuckets = 1 << 14

// New makes buckets that hold most tokens, and of which an empty one is full again in
// so long. It is nil where most is not above 0.
func New[K comparable](most float64, in time.Duration, now func() time.Time) *Buckets[K] {
	if most <= 0 {
		return nil
	}
	return &Buckets[K]{most: most, period: in, now: now, buckets: lru.New[K, *bucket](maxBuckets)}
}

// Take takes n tokens and returns 0, or returns how long it takes until there are so
// many.
func (b *Buckets[K]) Take(key K, n float64) time.Duration { return b.take(key, n, n) }

// Wait is how long it takes until there are n tokens. It takes none.
func (b *Buckets[K]) Wait(key K, n float64) time.Duration { return b.take(key, n, 0) }

// Give puts n tokens back. Fewer than 0 are taken, also those that are not there: the
// bucket is in debt then.
func (b *Buckets[K]) Give(key K, n float64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.refilled(key)
	one.tokens = min(b.most, one.tokens+n)
}

func (b *Buckets[K]) take(key K, n, used float64) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	one := b.refilled(key)
	if one.tokens < n {
		return time.Duration((n-one.tokens)*float64(b.period)/b.most) + 1
	}
	one.tokens -= used
	return 0
}

// refilled returns the bucket of a key as it is now. A clock that went back adds nothing.
// The caller holds the lock.
func (b *Buckets[K]) refilled(key K) *bucket {
	now := b.now()
	one := b.buckets.GetOrCreate(key, 1, func() *bucket { return &bucket{b.most, now} })
	one.tokens = min(b.most, one.tokens+max(0, now.Sub(one.at).Seconds())/b.period.Seconds()*b.most)
	one.at = now
	return one
}
