package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
)

// TestWhenActs: what the first line says, by favor and window.
func TestWhenActs(t *testing.T) {
	for _, c := range []struct {
		auto   policy.Auto
		window int
		want   string
	}{
		{policy.Auto{}, 200_000, "compacts at 64,000 of 200,000 tokens and keeps 32,000; at about 166,000 where the model's prices are not known (favor: balanced)"},
		{policy.Auto{Favor: policy.FavorQuality}, 1_016_000, "compacts at 800,000 of 1,016,000 tokens and keeps 400,000 (favor: quality)"},
		{policy.Auto{Favor: policy.FavorCost}, 200_000, "compacts at about 35,000 of 200,000 tokens and keeps 20,000; at about 166,000 where the model's prices are not known (favor: cost)"},
		{policy.Auto{}, 0, "compacts at 64,000 tokens and keeps 32,000, sooner in a window under 142,000; at 90 % of the window where a model's prices are not known (favor: balanced)"},
		{policy.Auto{Favor: policy.FavorQuality}, 0, "compacts at 80 % of each model's window without its answer and keeps 50 % of that (favor: quality)"},
		{policy.Auto{Favor: policy.FavorQuality, Hard: 0.5, Target: 0.1}, 0, "compacts at 50 % of each model's window without its answer and keeps 20 % of that (favor: quality)"},
		{policy.Auto{Favor: policy.FavorCost}, 0, "compacts at about 35,000 tokens and keeps 20,000; at 90 % of the window where a model's prices are not known (favor: cost)"},
	} {
		s := policyfile.Default("auto")
		s.Auto = c.auto
		if got := describePolicy(s, c.window); got != c.want {
			t.Errorf("%+v, window %d:\n%s, want\n%s", c.auto, c.window, got, c.want)
		}
	}
	if got := describePolicy(policyfile.Default("loop"), 0); !strings.HasPrefix(got, "compacts by the policy loop: Above 80 %") {
		t.Error(got)
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
	compact("the-request-takes-70000-tokens-the-balanced-mark-is-64000", 70_000, 32_000, map[string]any{"pays_after_steps": 8})
	compact("the-request-takes-50000-tokens-and-the-provider-has-forgotten-it", 50_000, 32_000, map[string]any{"pays_after_steps": 0})
	told.Emit(t.Context(), event.Event{Type: event.PreCompact, ThreadID: "b", Details: map[string]any{"why": "x"}})
	told.Emit(t.Context(), event.Event{Type: event.Failed, ThreadID: "b"})
	if out.Len() > 0 || len(told.reasons) > 0 {
		t.Errorf("written while the agent draws: %q; left %v", out.String(), told.reasons)
	}
	h.flush()
	compact("", 10, 12, nil)
	want := `palimpsest: compacted 70,000 tokens to 32,000 (the balanced mark is 64000); each request is 38,000 tokens smaller, which pays for it after 8 requests
palimpsest: compacted 50,000 tokens to 32,000 (the provider has forgotten it); each request is 18,000 tokens smaller, which pays at once
palimpsest: compacted 10 tokens to 12
`
	if out.String() != want {
		t.Errorf("%s, want\n%s", out.String(), want)
	}
}
