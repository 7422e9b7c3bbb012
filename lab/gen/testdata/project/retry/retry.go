// Package retry repeats an operation until it works, until it is known that it
// never will, or until the caller gives up.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanentError marks an error that another attempt will not fix.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks err so that Do stops. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err was marked by Permanent.
func IsPermanent(err error) bool {
	_, ok := err.(*permanentError)
	return ok
}

// afterError carries the delay the other side asked for.
type afterError struct {
	err   error
	after time.Duration
}

func (e *afterError) Error() string { return e.err.Error() }
func (e *afterError) Unwrap() error { return e.err }

// After marks err with the delay that the other side asked for, which replaces
// the delay of the policy.
func After(err error, d time.Duration) error {
	return &afterError{err, d}
}

// Runner runs operations under a policy. The zero values of the functions mean
// the real ones.
type Runner struct {
	Policy Policy
	// Sleep waits between attempts.
	Sleep func(ctx context.Context, d time.Duration) error
	// OnRetry is told about every failed attempt that will be repeated.
	OnRetry func(attempt int, err error, delay time.Duration)
}

// Do calls op until it returns nil or a permanent error, the attempts are used
// up, or ctx ends.
func (r Runner) Do(ctx context.Context, op func(ctx context.Context) error) error {
	sleep := r.Sleep
	if sleep == nil {
		sleep = sleepFor
	}
	for attempt := 0; ; attempt++ {
		err := op(ctx)
		if err == nil || IsPermanent(err) {
			return err
		}
		if r.Policy.MaxAttempts > 0 && attempt+1 >= r.Policy.MaxAttempts {
			return fmt.Errorf("giving up after %d attempts: %w", attempt+1, err)
		}
		d := r.Policy.Delay(attempt)
		var after *afterError
		if errors.As(err, &after) {
			d = after.after
		}
		if r.OnRetry != nil {
			r.OnRetry(attempt+1, err, d)
		}
		if err := sleep(ctx, d); err != nil {
			return err
		}
	}
}

// sleepFor is the default Sleep.
func sleepFor(ctx context.Context, d time.Duration) error {
	time.Sleep(d)
	return ctx.Err()
}
