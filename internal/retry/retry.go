// Package retry asks again after failures that may pass: exponential waits with
// full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/),
// bounded in attempts and in time, and never against what the server said in
// Retry-After.
package retry

import (
	"context"
	"math/rand/v2"
	"time"
)

// Policy says how often and how long to try. The zero value is the default and
// is safe for concurrent use, as is every policy whose functions are.
type Policy struct {
	// Attempts is the number of tries, the first included; 0 stands for 4, 1
	// tries once.
	Attempts int
	// Base is the longest wait before the second try; it doubles with every
	// further one. 0 stands for 500 ms.
	Base time.Duration
	// Max is the longest wait of our own choosing; 0 stands for 20 s. A server
	// may ask for more in Retry-After.
	Max time.Duration
	// Total bounds the time from the first try to the beginning of the last; 0
	// stands for 2 minutes. A wait that would pass it, or the deadline of the
	// context, is not begun: the failure is returned at once.
	Total time.Duration
	// Sleep waits for d or until ctx is done, and then returns its error; nil
	// waits on a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter picks a wait from 0 to longest; nil picks at random.
	Jitter func(longest time.Duration) time.Duration
	// Now is the clock; nil stands for time.Now.
	Now func() time.Time
}

// Decision is what to do after a failure.
type Decision struct {
	// Again says that the failure may pass.
	Again bool
	// After is how long the server asked to wait, 0 when it did not say.
	After time.Duration
}

// Do calls op until it succeeds, decide says no, or a bound is reached, and
// returns the last error of op; it is never nil with a done context and an op
// that fails.
func (p Policy) Do(ctx context.Context, op func(ctx context.Context) error, decide func(err error) Decision) error {
	now := p.clock()
	start := now()
	for attempt := 1; ; attempt++ {
		err := op(ctx)
		if err == nil || ctx.Err() != nil || attempt >= p.attempts() {
			return err
		}
		d := decide(err)
		if !d.Again {
			return err
		}
		wait := p.wait(attempt, d.After)
		at := now()
		if at.Add(wait).Sub(start) > p.total() {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && !at.Add(wait).Before(deadline) {
			return err
		}
		if p.sleep(ctx, wait) != nil {
			return err
		}
	}
}

// wait is the time before the try after the given one. What the server asked
// for is the least; a little jitter on top keeps clients apart that were all
// told the same moment.
func (p Policy) wait(attempt int, after time.Duration) time.Duration {
	longest := p.Base
	if longest <= 0 {
		longest = 500 * time.Millisecond
	}
	most := p.Max
	if most <= 0 {
		most = 20 * time.Second
	}
	for range attempt - 1 {
		if longest >= most {
			break
		}
		longest *= 2
	}
	longest = min(longest, most)
	if after > 0 {
		return after + p.jitter(min(after/10, longest))
	}
	return p.jitter(longest)
}

func (p Policy) jitter(longest time.Duration) time.Duration {
	if p.Jitter != nil {
		return p.Jitter(longest)
	}
	return time.Duration(rand.Int64N(int64(longest) + 1))
}

func (p Policy) sleep(ctx context.Context, d time.Duration) error {
	if p.Sleep != nil {
		return p.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p Policy) attempts() int {
	if p.Attempts <= 0 {
		return 4
	}
	return p.Attempts
}

func (p Policy) total() time.Duration {
	if p.Total <= 0 {
		return 2 * time.Minute
	}
	return p.Total
}

func (p Policy) clock() func() time.Time {
	if p.Now != nil {
		return p.Now
	}
	return time.Now
}
