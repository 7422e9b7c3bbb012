package event_test

import (
	"context"
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
