// Package retry repeats operations after temporary failures, with exponential backoff and
// full jitter (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/),
// within bounds of attempts and time. It respects Retry-After.
package retry

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/palimpsest-ai/palimpsest/llm"
)

// Policy is how often and how long to try, and does it.
type Policy llm.Retry

// Do calls op until it succeeds, fails with anything but a temporary llm.APIError, or a bound is reached. It
// returns the last error of op.
func (p Policy) Do(ctx context.Context, op func(ctx context.Context) error) error {
	p = p.withDefaults()
	start := p.Now()
	for attempt := 1; ; attempt++ {
		err := op(ctx)
		if err == nil || ctx.Err() != nil || attempt >= p.Attempts {
			return err
		}
		failed, ok := errors.AsType[*llm.APIError](err)
		if !ok || !failed.Temporary() {
			return err
		}
		wait := p.delay(attempt, failed.RetryAfter)
		at := p.Now()
		if at.Add(wait).Sub(start) > p.Total {
			return err
		}
		if deadline, ok := ctx.Deadline(); ok && !at.Add(wait).Before(deadline) {
			return err
		}
		if p.Sleep(ctx, wait) != nil {
			return err
		}
	}
}

// delay is the time to wait after the given attempt. It is at least what the server asked
// for, with a little jitter on top to spread clients that were all told the same moment.
func (p Policy) delay(attempt int, after time.Duration) time.Duration {
	longest := p.Base
	for n := 1; n < attempt && longest < p.Max; n++ {
		longest *= 2
	}
	longest = min(longest, p.Max)
	if after > 0 {
		return after + p.Jitter(min(after/10, longest))
	}
	return p.Jitter(longest)
}

// withDefaults returns the policy with the defaults in place of zero fields.
func (p Policy) withDefaults() Policy {
	p.Attempts = cmp.Or(max(p.Attempts, 0), 4)
	p.Base = cmp.Or(max(p.Base, 0), 500*time.Millisecond)
	p.Max = cmp.Or(max(p.Max, 0), 20*time.Second)
	p.Total = cmp.Or(max(p.Total, 0), 2*time.Minute)
	if p.Sleep == nil {
		p.Sleep = sleep
	}
	if p.Jitter == nil {
		p.Jitter = func(longest time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(longest) + 1)) }
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
