package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestWhenActs: what the first line says, by favor and window.
func TestWhenActs(t *testing.T) {
	for _, c := range []struct {
		auto   policy.Auto
		window int
		want   string
	}{
		{policy.Auto{}, 200_000, "compacts at 60,000 to 64,000 of 200,000 tokens and keeps 30,000 to 32,000; at 90 % of what a request leaves for its messages where the model's prices are not known (favor: balanced)"},
		{policy.Auto{}, 20_000, "compacts at 12,000 to 18,000 of 20,000 tokens (90 % of what a request leaves for its messages) and keeps about 6,700 to 10,000 (favor: balanced)"},
		{policy.Auto{Favor: policy.FavorQuality}, 900_000, "compacts at 480,000 to 720,000 of 900,000 tokens (80 % of what a request leaves for its messages) and keeps 240,000 to 360,000 (favor: quality)"},
		{policy.Auto{Favor: policy.FavorCost}, 200_000, "compacts at about 35,000 of 200,000 tokens and keeps 20,000; at 90 % of what a request leaves for its messages where the model's prices are not known (favor: cost)"},
		{policy.Auto{}, 0, "compacts at 64,000 tokens and keeps 32,000; sooner in small windows, at 90 % of the window where prices are not known (favor: balanced)"},
		{policy.Auto{Favor: policy.FavorQuality}, 0, "compacts at 80 % of each model's room for messages and keeps 50 % of that (favor: quality)"},
		{policy.Auto{Favor: policy.FavorQuality, Hard: 0.5, Target: 0.1}, 0, "compacts at 50 % of each model's room for messages and keeps 20 % of that (favor: quality)"},
		{policy.Auto{Favor: policy.FavorCost}, 0, "compacts at about 35,000 tokens and keeps 20,000; sooner in small windows, at 90 % of the window where prices are not known (favor: cost)"},
	} {
		s := policyfile.Default("auto")
		s.Auto = c.auto
		if got := describePolicy(s, c.window, token.UsualRates()); got != c.want {
			t.Errorf("%+v, window %d:\n%s, want\n%s", c.auto, c.window, got, c.want)
		}
	}
	const want = "compacts at 120,000 to 180,000 of 200,000 tokens (90 % of what a request leaves for its messages) and keeps about 67,000 to 100,000 (favor: balanced)"
	if got := describePolicy(policyfile.Default("auto"), 200_000, token.Rates{}); got != want {
		t.Errorf("without prices:\n%s, want\n%s", got, want)
	}
	// Without a part of the ladder prices do not count; the marks of the file do.
	s := policyfile.Default("auto")
	s.Auto.Favor, s.DisabledRungs.Drop = policy.FavorQuality, true
	if got := describePolicy(s, 0, token.UsualRates()); !strings.HasPrefix(got, "compacts by the policy auto: At 80 % of the room for messages, down to 40 %: ") || !strings.HasSuffix(got, "Switched off: drop.") {
		t.Error(got)
	}
	s = policyfile.Default("last-turns")
	s.Auto.Hard = 0.725
	if got := describePolicy(s, 0, token.UsualRates()); !strings.HasPrefix(got, "compacts by the policy last-turns:3: At 72.5 % of the room for messages, down to 50 %: everything") {
		t.Error(got)
	}
	if got := describePolicy(policyfile.Default("loop"), 0, token.UsualRates()); !strings.HasPrefix(got, "compacts by the policy loop: Above 80 %") {
		t.Error(got)
	}
}

// TestTroubles: what failed is told once, with its cause; what the client broke off is not.
func TestTroubles(t *testing.T) {
	var got []string
	sink := newTroubles(func(_ event.Event, line string) { got = append(got, line) })
	full := errors.New("the disk is full")
	for n := range 2 {
		for _, e := range []event.Event{
			event.Event{Type: event.Failed}.Failing(fmt.Errorf("append to t%d: %w", n, full)),
			event.Event{Type: event.RequestProxied, Details: map[string]any{"status": 200}}.Failing(context.Canceled),
			{Type: event.RequestProxied, Err: "provider", Cause: io.ErrUnexpectedEOF, Details: map[string]any{"status": 200}},
			{Type: event.RequestProxied, Details: map[string]any{"status": 400, "reason": "refused"}},
			{Type: event.Completed, Err: "provider", Cause: full},
		} {
			sink.Emit(t.Context(), e)
		}
	}
	if want := []string{"something failed (error): append to t0: the disk is full", "the provider broke off its answer: unexpected EOF"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCompacted: each compaction is a line that says why and what it saves, and
// lines wait while an agent draws on the terminal.
func TestCompacted(t *testing.T) {
	var out bytes.Buffer
	h := &deferredLines{w: &out, hold: true}
	told := newAnnouncer(h.print)
	compact := func(why string, before, after int, details map[string]any) {
		told.Emit(t.Context(), event.Event{Type: event.PreCompact, ThreadID: "a", Details: map[string]any{"why": why}})
		told.Emit(t.Context(), event.Event{Type: event.Cleared, ThreadID: "a", TokensFreed: 1})
		told.Emit(t.Context(), event.Event{Type: event.Completed, ThreadID: "a", TokensBefore: before, TokensAfter: after, TokensFreed: before - after, Details: details})
	}
	compact("the-request-takes-70000-tokens-and-is-over-the-64000-of-balanced", 70_000, 32_000, map[string]any{"pays_after_steps": 8})
	compact("the-request-takes-50000-tokens-and-the-provider-has-forgotten-it", 50_000, 32_000, map[string]any{"pays_after_steps": 0})
	told.Emit(t.Context(), event.Event{Type: event.PreCompact, ThreadID: "b", Details: map[string]any{"why": "x"}})
	told.Emit(t.Context(), event.Event{Type: event.Failed, ThreadID: "b"})
	if left, _ := told.reasons.Stats(); out.Len() > 0 || left > 0 {
		t.Errorf("written while the agent draws: %q; %d reasons are left", out.String(), left)
	}
	h.flush()
	compact("", 10, 12, nil)
	want := `palimpsest: compacted 70,000 tokens to 32,000 (over the 64,000 of balanced); each request is 38,000 tokens smaller, which pays for it after 8 requests
palimpsest: compacted 50,000 tokens to 32,000 (the provider has forgotten it); each request is 18,000 tokens smaller, which pays at once
palimpsest: compacted 10 tokens to 12
`
	if out.String() != want {
		t.Errorf("%s, want\n%s", out.String(), want)
	}
}

// TestNothingToCompact: of a compaction that turned out to have nothing to do no event says
// that it ended, and it is not kept for ever.
func TestNothingToCompact(t *testing.T) {
	told := newAnnouncer(func(event.Event, string) {})
	for n := range 3 * maxReasons {
		told.Emit(t.Context(), event.Event{Type: event.PreCompact, ThreadID: fmt.Sprint(n), Details: map[string]any{"why": "it is due"}})
	}
	if kept, _ := told.reasons.Stats(); kept > maxReasons {
		t.Errorf("%d reasons are kept", kept)
	}
}
