package artifact

import (
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/bucket"
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

// limiter bounds what each requester reads.
type limiter struct{ reads, bytes *bucket.Buckets[caller] }

type caller struct{ tenant, id string }

func newLimiter(limits Limits, now func() time.Time) *limiter {
	return &limiter{
		bucket.New[caller](float64(limits.ReadsPerMinute), time.Minute, now),
		bucket.New[caller](float64(limits.BytesPerMinute), time.Minute, now),
	}
}

// admit takes one read, or says when there will be one.
func (l *limiter) admit(who Requester) error {
	c := caller{who.TenantID, who.ID}
	wait := l.bytes.Wait(c, 1)
	if wait == 0 {
		wait = l.reads.Take(c, 1)
	}
	if wait > 0 {
		return &LimitError{RetryAfter: wait}
	}
	return nil
}

// charge takes the bytes that were given.
func (l *limiter) charge(who Requester, n int) {
	l.bytes.Give(caller{who.TenantID, who.ID}, -float64(n))
}
