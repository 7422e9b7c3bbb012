package artifact

import (
	"fmt"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/lru"
)

// Requester is who asks (seed A, SecurityContext). The zero value is the owner
// of a machine without tenants, who may read everything.
type Requester struct {
	// TenantID is the tenant whose artifacts may be seen.
	TenantID string
	// ID tells the requesters of a tenant apart, such as the id of an API key;
	// each has rate limits of its own.
	ID string
	// Clearance is the most sensitive class whose content may be read; "" is
	// Restricted, all. Metadata may be read of all, so that a caller can say why
	// the content may not.
	Clearance Sensitivity
}

// Limits bound how much one requester reads. The zero value bounds nothing.
type Limits struct {
	// ReadsPerMinute counts every call of Get, Metadata and List, found or not,
	// so that ids cannot be tried out. 0 is no limit.
	ReadsPerMinute int
	// BytesPerMinute counts content that was given out. Content is given whole:
	// it may exceed what is left, and then nothing more is until that is made up
	// for. 0 is no limit.
	BytesPerMinute int
}

// LimitError says when to try again. It matches ErrLimited.
type LimitError struct{ RetryAfter time.Duration }

// Error names the time to wait.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v; try again in %s", ErrLimited, e.RetryAfter.Round(time.Millisecond))
}

// Is makes every LimitError match ErrLimited.
func (e *LimitError) Is(target error) bool { return target == ErrLimited }

// limiter holds two token buckets for each requester. A bucket holds a minute's
// worth at most.
type limiter struct {
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	buckets *lru.Cache[caller, *buckets]
}

type caller struct{ tenant, id string }

type buckets struct {
	reads, bytes float64
	at           time.Time
}

// manyBuckets is of how many requesters buckets are held: who has not asked for
// longest begins anew.
const manyBuckets = 4096

func newLimiter(limits Limits, now func() time.Time) *limiter {
	return &limiter{limits: limits, now: now, buckets: lru.New[caller, *buckets](manyBuckets)}
}

// admit takes one read, or says when there will be one.
func (l *limiter) admit(who Requester) error {
	if l.limits == (Limits{}) {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(who)
	wait := max(missing(1, b.reads, l.limits.ReadsPerMinute), missing(1, b.bytes, l.limits.BytesPerMinute))
	if wait > 0 {
		return &LimitError{RetryAfter: wait}
	}
	b.reads--
	return nil
}

// charge takes the bytes that were given.
func (l *limiter) charge(who Requester, n int) {
	if l.limits.BytesPerMinute <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(who).bytes -= float64(n)
}

// missing is how long it takes until there are n.
func missing(n, have float64, perMinute int) time.Duration {
	if perMinute <= 0 || have >= n {
		return 0
	}
	return time.Duration((n-have)/float64(perMinute)*float64(time.Minute)) + 1
}

// of returns a requester's buckets as they are now. A clock that went back adds
// nothing.
func (l *limiter) of(who Requester) *buckets {
	now, reads, bytes := l.now(), float64(l.limits.ReadsPerMinute), float64(l.limits.BytesPerMinute)
	b := l.buckets.Of(caller{who.TenantID, who.ID}, 1, func() *buckets { return &buckets{reads, bytes, now} })
	minutes := max(0, now.Sub(b.at).Minutes())
	b.at = now
	b.reads = min(reads, b.reads+minutes*reads)
	b.bytes = min(bytes, b.bytes+minutes*bytes)
	return b
}
