package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

var testPolicy = Policy{Base: 250 * time.Millisecond, Cap: 30 * time.Second, Jitter: 0.2}

// most is a random source that always gives the largest number. Like the real
// one it does not accept n <= 0.
func most(n int64) int64 {
	if n <= 0 {
		panic("invalid argument to Int64N")
	}
	return n - 1
}

// safeDelay turns a panic into an error, so that one bad row does not hide the
// rows after it.
func safeDelay(p Policy, attempt int) (d time.Duration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return p.delay(attempt, most), nil
}

func TestDelayDoubles(t *testing.T) {
	p := Policy{Base: 100 * time.Millisecond, Cap: time.Second}
	want := []time.Duration{100, 200, 400, 800, 1000, 1000}
	for i, w := range want {
		if got := p.Delay(i); got != w*time.Millisecond {
			t.Errorf("Delay(%d) = %v, want %v", i, got, w*time.Millisecond)
		}
	}
}

func TestDelayNeverExceedsCap(t *testing.T) {
	for attempt := 0; attempt < 20; attempt++ {
		d, err := safeDelay(testPolicy, attempt)
		if err != nil || d > testPolicy.Cap {
			t.Errorf("delay(%d) = %v, %v; the cap is %v", attempt, d, err, testPolicy.Cap)
		}
	}
}

func TestDelayAfterManyAttempts(t *testing.T) {
	for _, attempt := range []int{34, 35, 36, 40, 56, 57, 63, 64, 1000} {
		d, err := safeDelay(testPolicy, attempt)
		if err != nil {
			t.Errorf("delay(%d): %v", attempt, err)
			continue
		}
		if d < 20*time.Second {
			t.Errorf("delay(%d) = %v, want something near the cap of %v", attempt, d, testPolicy.Cap)
		}
	}
}

// noSleep counts the delays instead of waiting.
type noSleep struct{ delays []time.Duration }

func (n *noSleep) sleep(ctx context.Context, d time.Duration) error {
	n.delays = append(n.delays, d)
	return ctx.Err()
}

func TestDoStopsAtMaxAttempts(t *testing.T) {
	var n noSleep
	r := Runner{Policy: Policy{MaxAttempts: 4, Base: time.Second, Cap: time.Minute}, Sleep: n.sleep}
	calls := 0
	boom := errors.New("boom")
	err := r.Do(context.Background(), func(context.Context) error { calls++; return boom })
	if !errors.Is(err, boom) || calls != 4 || len(n.delays) != 3 {
		t.Errorf("err = %v, %d calls, delays %v; want boom after 4 calls and 3 delays", err, calls, n.delays)
	}
}

func TestDoStopsOnPermanentError(t *testing.T) {
	base := errors.New("address unknown")
	tests := []struct {
		name string
		err  error
	}{
		{"bare", Permanent(base)},
		{"wrapped once", fmt.Errorf("create label: %w", Permanent(base))},
		{"wrapped twice", fmt.Errorf("ship: %w", fmt.Errorf("create label: %w", Permanent(base)))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n noSleep
			r := Runner{Policy: Policy{MaxAttempts: 5, Base: time.Second, Cap: time.Minute}, Sleep: n.sleep}
			calls := 0
			err := r.Do(context.Background(), func(context.Context) error { calls++; return tt.err })
			if !errors.Is(err, base) {
				t.Errorf("err = %v, want %v", err, base)
			}
			if calls != 1 {
				t.Errorf("op was called %d times, want 1", calls)
			}
		})
	}
}

func TestDoHonoursAfter(t *testing.T) {
	var n noSleep
	r := Runner{Policy: Policy{MaxAttempts: 2, Base: time.Second, Cap: time.Minute}, Sleep: n.sleep}
	_ = r.Do(context.Background(), func(context.Context) error {
		return After(errors.New("slow down"), 7*time.Second)
	})
	if len(n.delays) != 1 || n.delays[0] != 7*time.Second {
		t.Errorf("delays = %v, want [7s]", n.delays)
	}
}

func TestDoReturnsWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	r := Runner{Policy: Policy{Base: 20 * time.Second, Cap: time.Minute}}
	done := make(chan error, 1)
	go func() {
		done <- r.Do(ctx, func(context.Context) error {
			cancel() // the shutdown arrives while the first call is running
			return errors.New("boom")
		})
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v, want context.Canceled", err)
		}
	case <-time.After(500 * time.Millisecond):
		t.Error("Do is still sleeping after the context ended")
	}
}
