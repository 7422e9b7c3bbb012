package retry_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// errAgain is a failure that may pass.
var errAgain error = &llm.APIError{Kind: llm.ErrServer}

// askedToWait is such a failure of a server that asks to wait.
func askedToWait(after time.Duration) error {
	return &llm.APIError{Kind: llm.ErrOverloaded, RetryAfter: after}
}

// tries runs a policy over an op that always fails and returns when it was tried.
func tries(ctx context.Context, p retry.Policy, failed error) (at []time.Duration, err error) {
	start := time.Now()
	err = p.Do(ctx, func(context.Context) error {
		at = append(at, time.Since(start))
		return failed
	})
	return at, err
}

func longest(d time.Duration) time.Duration { return d }

const ms = time.Millisecond

func TestDo(t *testing.T) {
	for _, test := range []struct {
		name   string
		policy retry.Policy
		failed error
		want   []time.Duration
	}{
		{"default", retry.Policy{}, errAgain, []time.Duration{0, 500 * ms, 1500 * ms, 3500 * ms}},
		{"once", retry.Policy{Attempts: 1}, errAgain, []time.Duration{0}},
		{"no", retry.Policy{}, errors.New("another"), []time.Duration{0}},
		{"not temporary", retry.Policy{}, &llm.APIError{Kind: llm.ErrAuth}, []time.Duration{0}},
		{"ceiling", retry.Policy{Base: time.Second, Max: 3 * time.Second, Attempts: 5}, errAgain,
			[]time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second, 9 * time.Second}},
		{"total", retry.Policy{Base: time.Second, Attempts: 9, Total: 4 * time.Second}, errAgain,
			[]time.Duration{0, time.Second, 3 * time.Second}},
		{"asked to wait", retry.Policy{Attempts: 2}, askedToWait(30 * time.Second),
			[]time.Duration{0, 30*time.Second + 500*ms}},
		{"asked to wait too long", retry.Policy{}, askedToWait(3 * time.Minute),
			[]time.Duration{0}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.policy.Jitter = longest
				at, err := tries(t.Context(), test.policy, test.failed)
				if err != test.failed || !slices.Equal(at, test.want) {
					t.Errorf("tried at %v, want %v; error %v", at, test.want, err)
				}
			})
		})
	}
}

func TestDoSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := retry.Policy{}.Do(t.Context(), func(context.Context) error {
			if n++; n < 3 {
				return errAgain
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%v after %d tries", err, n)
		}
	})
}

// A wait ends at once when the context does.
func TestDoCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(700*ms, cancel)
		start := time.Now()
		at, err := tries(ctx, retry.Policy{Jitter: longest}, errAgain)
		if len(at) != 2 || err != errAgain || time.Since(start) != 700*ms {
			t.Errorf("tried at %v, ended after %v with %v", at, time.Since(start), err)
		}
	})
}

// A wait that the deadline would cut short is not begun.
func TestDoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		at, _ := tries(ctx, retry.Policy{Jitter: longest}, errAgain)
		if len(at) != 2 || time.Since(start) != 500*ms {
			t.Errorf("tried at %v, ended after %v", at, time.Since(start))
		}
	})
}

func TestJitter(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		attempts := rapid.IntRange(1, 12).Draw(t, "attempts")
		base := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "base"))
		most := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "max"))
		after := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "after"))
		var waits []time.Duration
		p := retry.Policy{Attempts: attempts, Base: base, Max: most, Total: 24 * time.Hour, Sleep: func(_ context.Context, d time.Duration) error {
			waits = append(waits, d)
			return nil
		}}
		p.Do(context.Background(), func(context.Context) error { return askedToWait(after) })
		if len(waits) != attempts-1 {
			t.Fatalf("%d waits of %d attempts", len(waits), attempts)
		}
		for i, w := range waits {
			if w < after || w > after+min(most, base<<min(i, 20)) {
				t.Fatalf("wait %d is %v: base %v, max %v, asked %v", i, w, base, most, after)
			}
		}
	})
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, test := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", " 1.5 ", 1500 * ms},
		{"Retry-After", "0", 0},
		{"Retry-After", "-3", 0},
		{"Retry-After", "soon", 0},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "Inf", 24 * time.Hour},
		{"Retry-After", "Wed, 04 Mar 2026 05:06:17 GMT", 10 * time.Second},
		{"Retry-After", "Wed, 04 Mar 2020 05:06:17 GMT", 0},
		{"Retry-After", "Wed, 04 Mar 2099 05:06:17 GMT", 24 * time.Hour},
		{"Retry-After-Ms", "250", 250 * ms},
		{"Retry-After-Ms", "x", 0},
	} {
		if got := retry.RetryAfter(http.Header{test.name: {test.value}}, now); got != test.want {
			t.Errorf("%s %q: %v, want %v", test.name, test.value, got, test.want)
		}
	}
	both := http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"20"}}
	if got := retry.RetryAfter(both, now); got != 20*ms {
		t.Errorf("both: %v, want the finer one", got)
	}
	if got := retry.RetryAfter(http.Header(nil), now); got != 0 {
		t.Errorf("none: %v", got)
	}
}
