package proxy

import (
	"context"
	"time"
)

// Waits gives the options a clock of their own: wait is told of every wait
// between two tries of a round, and takes its place.
func (o *Options) Waits(wait func(ctx context.Context, d time.Duration) error) {
	o.retry.Sleep = wait
	o.retry.Jitter = func(longest time.Duration) time.Duration { return longest }
}

// Waiting reports whether the options wait by the real clock.
func (o *Options) Waiting() bool { return o.retry.Sleep == nil }
