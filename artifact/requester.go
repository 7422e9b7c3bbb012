package artifact

import (
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/ratelimit"
)

// Requester is who asks for artifacts. The zero value is for a machine without
// tenants, and may read everything.
type Requester struct {
	// TenantID is the tenant whose artifacts the requester sees.
	TenantID string
	// ID tells requesters of a tenant apart, such as the id of an API key. Each has
	// its own rate limits.
	ID string
	// Clearance is the most sensitive class whose content may be read; "" allows all.
	// Metadata can always be read, so that a caller can say why content is refused.
	Clearance Sensitivity
}

// Limits bound how much one requester reads. The zero value bounds nothing.
type Limits struct {
	// ReadsPerMinute counts calls of Get, Metadata and List, also those that find
	// nothing, so that ids cannot be guessed. 0 is no limit.
	ReadsPerMinute int
	// BytesPerMinute counts content that was returned. A read may exceed what is left;
	// further reads then wait until that is made up for. 0 is no limit.
	BytesPerMinute int
}

// LimitError is returned when a requester exceeds its limits. It matches ErrLimited.
type LimitError struct{ RetryAfter time.Duration }

// Error says when to try again.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%v; try again in %s", ErrLimited, e.RetryAfter.Round(time.Millisecond))
}

// Is makes every LimitError match ErrLimited.
func (e *LimitError) Is(target error) bool { return target == ErrLimited }

// limiter applies Limits to each requester.
type limiter struct{ reads, bytes *ratelimit.Buckets[caller] }

type caller struct{ tenant, id string }

func newLimiter(limits Limits, now func() time.Time) *limiter {
	return &limiter{
		ratelimit.New[caller](float64(limits.ReadsPerMinute), time.Minute, now),
		ratelimit.New[caller](float64(limits.BytesPerMinute), time.Minute, now),
	}
}

// admit counts one read, or returns a *LimitError.
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

// charge counts bytes that were returned.
func (l *limiter) charge(who Requester, n int) {
	l.bytes.Give(caller{who.TenantID, who.ID}, -float64(n))
}
