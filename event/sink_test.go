package event_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/event"
)

var broken = event.Func(func(context.Context, event.Event) { panic("a sink fell over") })

// A panicking sink harms neither the caller nor the sinks after it.
func TestPanicStaysInTheSink(t *testing.T) {
	var seen []event.Type
	last := event.Func(func(_ context.Context, e event.Event) { seen = append(seen, e.Type) })
	event.Emit(t.Context(), broken, event.Event{Type: event.CheckStarted})
	event.Multi(broken, nil, event.Func(nil), last).Emit(t.Context(), event.Event{Type: event.Completed})
	event.Emit(t.Context(), nil, event.Event{})
	if diff := cmp.Diff([]event.Type{event.Completed}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestEmitSetsTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []time.Time
		keep := event.Func(func(_ context.Context, e event.Event) { got = append(got, e.Time) })
		event.Emit(t.Context(), keep, event.Event{})
		event.Emit(t.Context(), keep, event.Event{Time: noon})
		if diff := cmp.Diff([]time.Time{time.Now().UTC(), noon}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// The list of sinks belongs to Multi.
func TestMultiCopiesItsList(t *testing.T) {
	n := 0
	sinks := []event.Sink{event.Func(func(context.Context, event.Event) { n++ })}
	m := event.Multi(sinks...)
	sinks[0] = broken
	m.Emit(t.Context(), event.Event{})
	if n != 1 {
		t.Errorf("the first sink saw %d events, want 1", n)
	}
}

// C11, E4: a caller's hooks are sinks that look at the type.
func TestHooksAreSinks(t *testing.T) {
	var before, after []int
	var source, trigger any
	hooks := event.Func(func(_ context.Context, e event.Event) {
		switch e.Type {
		case event.PreCompact:
			before = append(before, e.TokensBefore)
		case event.Completed:
			after = append(after, e.TokensBefore, e.TokensAfter, e.TokensFreed)
		case event.SessionStart:
			source = e.Details["source"]
		case event.Boundary:
			trigger = e.Details["trigger"]
		}
	})
	for _, e := range lifecycle() {
		event.Emit(t.Context(), hooks, e)
	}
	if diff := cmp.Diff([]int{93_600}, before); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{93_600, 72_100, 21_500}, after); diff != "" {
		t.Error(diff)
	}
	if source != "compact" || trigger != "auto" {
		t.Errorf("session start of %v, boundary by %v", source, trigger)
	}
}

// A24
func TestCounters(t *testing.T) {
	var c event.Counters
	for _, e := range lifecycle() {
		event.Emit(t.Context(), &c, e)
	}
	event.Emit(t.Context(), &c, event.Event{Type: event.Cleared, Strategy: "clear", TokensFreed: 6, Cache: event.Hit})
	event.Emit(t.Context(), &c, event.Event{Type: event.Completed, Duration: time.Millisecond}) // on a bound: within it
	event.Emit(t.Context(), &c, event.Event{Type: event.Completed, Err: "rate_limited", Details: map[string]any{"fallback": "extractive"}})
	event.Emit(t.Context(), &c, event.Event{Type: event.Failed, Duration: time.Hour})
	event.Emit(t.Context(), &c, event.Event{Type: event.Failed, Duration: time.Minute, Details: map[string]any{"where": "proxy_invalid"}}) // of a request
	event.Emit(t.Context(), &c, event.Event{Type: event.RequestProxied, Details: map[string]any{"action": "passed", "reason": "fault", "status": 200}})
	event.Emit(t.Context(), &c, event.Event{Type: "of a later version"})
	event.Emit(t.Context(), &c, event.Event{Type: event.Asked, Details: map[string]any{"proposed": 13, "kept": 10, "dropped_number": 2, "dropped_user": 1}})
	got := c.Snapshot()
	want := event.Snapshot{
		Checks: 1, Compactions: 3, Failures: map[string]int64{"deadline_exceeded": 1, "error": 2}, Fallbacks: map[string]int64{"extractive": 1}, TokensFreed: 21_500,
		Strategies:     map[string]int64{"externalize": 1, "summarize": 1, "clear": 2, "retrieve": 1, "drop": 1},
		StrategyTokens: map[string]int64{"externalize": 9_000, "summarize": 8_000, "clear": 4_006, "retrieve": 400, "drop": 100},
		Latency: event.Histogram{
			Bounds: []float64{0.001, 0.005, 0.025, 0.1, 0.25, 1, 2.5, 5, 10, 30, 60},
			Counts: []int64{1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1}, Sum: 0.001 + 1.601 + 30 + 3600, Count: 4,
		},
		CacheHits: 1, CacheMisses: 1, Rehydrations: 1, Blocked: 1, Conflicts: 1, Overflows: 1, ContextRequests: 1, Alerts: 1,
		Sentences: 13, LeftOut: map[string]int64{"number": 2, "user": 1},
		Proxied: map[string]int64{"recovered": 1, "passed/fault": 1},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got.Strategies["clear"], got.Fallbacks["extractive"], got.LeftOut["user"], got.Proxied["recovered"] = 99, 99, 99, 99
	got.Latency.Counts[0] = 99
	if diff := cmp.Diff(want, c.Snapshot(), near); diff != "" {
		t.Errorf("a snapshot shares memory with the counters:\n%s", diff)
	}
}

// Names that come without end, or that are sentences, do not fill the memory
// or the metrics.
func TestCountersBoundNames(t *testing.T) {
	var c event.Counters
	for n := range 1000 {
		c.Emit(t.Context(), event.Event{Type: event.Cleared, Strategy: string(rune('a'+n%26)) + time.Duration(n).String()})
	}
	c.Emit(t.Context(), event.Event{Type: event.Failed, Err: canary})
	s := c.Snapshot()
	if len(s.Strategies) > 65 || s.Strategies["other"] != 1000-64 {
		t.Errorf("%d names, %d others", len(s.Strategies), s.Strategies["other"])
	}
	for class := range s.Failures {
		if class == canary {
			t.Error("content became a name")
		}
	}
}

// Run with -race.
func TestCountersConcurrently(t *testing.T) {
	var c event.Counters
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				event.Emit(t.Context(), &c, event.Event{Type: event.Cleared, Strategy: "clear", TokensFreed: 2, Cache: event.Hit})
				event.Emit(t.Context(), &c, event.Event{Type: event.Completed, TokensFreed: 2, Duration: time.Second})
				if s := c.Snapshot(); s.Strategies["clear"] < s.Compactions {
					t.Error("a snapshot is torn")
				}
			}
		})
	}
	group.Wait()
	s := c.Snapshot()
	if s.Strategies["clear"] != 4000 || s.StrategyTokens["clear"] != 8000 || s.TokensFreed != 8000 || s.CacheHits != 4000 || s.Latency.Count != 4000 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkCounters(b *testing.B) {
	var c event.Counters
	e := lifecycle()[4]
	b.ReportAllocs()
	for b.Loop() {
		event.Emit(b.Context(), &c, e)
	}
}
