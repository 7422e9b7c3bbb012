package retry

import (
	"math/rand/v2"
	"time"
)

// Policy says how long to wait between attempts and how often to try.
// docs/retry-policy.md has the reasons for the values we use.
type Policy struct {
	// MaxAttempts limits the number of calls. Zero means no limit.
	MaxAttempts int
	// Base is the delay after the first failed attempt.
	Base time.Duration
	// Cap is the longest delay.
	Cap time.Duration
	// Jitter is the random share of a delay, 0 to 1.
	Jitter float64
}

// Default is the policy agreed with Northpost.
var Default = Policy{
	Base:   250 * time.Millisecond,
	Cap:    30 * time.Second,
	Jitter: 0.2,
}

// Delay returns the time to wait after the given number of failed attempts,
// counted from zero.
func (p Policy) Delay(attempt int) time.Duration {
	return p.delay(attempt, rand.Int64N)
}

// delay takes the random source as an argument, for tests.
func (p Policy) delay(attempt int, int64n func(int64) int64) time.Duration {
	d := p.Base << attempt
	if d > p.Cap {
		d = p.Cap
	}
	if p.Jitter > 0 {
		d += time.Duration(int64n(int64(float64(d) * p.Jitter)))
	}
	return d
}
