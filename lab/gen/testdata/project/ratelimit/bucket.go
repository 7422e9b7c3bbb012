// Package ratelimit holds a token bucket.
package ratelimit

import (
	"context"
	"sync"
	"time"
)

// Bucket allows Rate events per second on average and Burst at once.
type Bucket struct {
	rate  int
	burst int
	now   func() time.Time

	mu     sync.Mutex
	tokens int
	last   time.Time
}

// New returns a full bucket. A nil clock means time.Now.
func New(rate, burst int, now func() time.Time) *Bucket {
	if now == nil {
		now = time.Now
	}
	return &Bucket{rate: rate, burst: burst, now: now, tokens: burst, last: now()}
}

// Allow takes a token if there is one.
func (b *Bucket) Allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refill()
	if b.tokens == 0 {
		return false
	}
	b.tokens--
	return true
}

// refill adds the tokens for the time since the last call.
func (b *Bucket) refill() {
	now := b.now()
	elapsed := now.Sub(b.last)
	b.last = now
	b.tokens += int(elapsed.Seconds() * float64(b.rate))
	if b.tokens > b.burst {
		b.tokens = b.burst
	}
}

// Wait blocks until a token is free or ctx ends.
func (b *Bucket) Wait(ctx context.Context) error {
	for !b.Allow() {
		t := time.NewTimer(time.Second / time.Duration(b.rate))
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
	return ctx.Err()
}
