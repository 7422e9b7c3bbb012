// Package strategytest is the conformance suite that every rung of a ladder
// passes: the built-in ones, and yours. Only tests import it.
//
//	func TestMyRung(t *testing.T) { strategytest.Run(t, MyRung{}) }
package strategytest

import (
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// The tolerance of an estimate: a record may free less than its proposal said
// by a tenth of what the span takes and thirty tokens more.
const (
	toleranceShare  = 0.1
	toleranceTokens = 30
)

// Count is the counter of the suite: a token for every four bytes of text,
// arguments and reasoning, rounded up, and four for each message.
func Count(m *thread.Message) int {
	bytes := 0
	for _, part := range m.Parts {
		switch part := part.(type) {
		case thread.ToolResult:
			bytes += len(part.Text())
		case thread.ToolCall:
			bytes += len(part.Name) + len(part.Arguments)
		case thread.Text:
			bytes += len(part.Text)
		case thread.Reasoning:
			bytes += len(part.Text) + len(part.Signature)
		case thread.Media:
			bytes += len(part.Data) + len(part.Text)
		case thread.Opaque:
			bytes += len(part.Raw)
		}
	}
	return 4 + (bytes+3)/4
}

// CountText is Count for a text on its own.
func CountText(s string) int { return (len(s) + 3) / 4 }

// View makes the view of a thread that may take room tokens, with the suite's
// counter, the built-in tool policies and a summarizer that needs no model.
func View(th *thread.Thread, profile render.Profile, room int) *strategy.View {
	sizes := make([]int, th.Len())
	for i, m := range th.All() {
		if sent := profile.Translate(*m, true); len(sent.Parts) > 0 {
			sizes[i] = Count(&sent)
		}
	}
	return strategy.NewView(strategy.Given{
		Thread: th, Profile: profile, Room: room, Count: Count, CountText: CountText, Sizes: sizes,
		Tools: toolpolicy.New(nil), Summarizer: &summarize.Extractive{Counter: CountText},
	})
}

// Run holds a strategy to what package strategy promises, on random threads at
// every level of protection (A17): Analyze is deterministic and changes
// nothing; Execute makes a record over its proposal's span that is valid for
// the thread, so no call is parted from its result and no open call touched;
// pinned messages are never in it, anchored ones never go, and nothing of the
// protected tail goes but becomes shorter at most; it frees what the proposal
// said, within a tenth of the span and thirty tokens, or fails with an error
// that wraps strategy.ErrNoGain or summarize.ErrBudget; and the view stays as
// it was.
func Run(t *testing.T, s strategy.Strategy) {
	t.Helper()
	if s.Name() == "" {
		t.Error("the strategy has no name to write into records")
	}
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		api := rapid.SampledFrom(threadgen.APIs).Draw(rt, "api")
		v := View(th, render.For(api), 0)
		v.Room = v.Total() * rapid.IntRange(5, 95).Draw(rt, "percent") / 100
		v.Protect(rapid.SampledFrom(strategy.Protections()).Draw(rt, "protection"))
		before := v.Total()
		proposals := s.Analyze(v)
		if again := s.Analyze(v); !reflect.DeepEqual(proposals, again) {
			rt.Fatalf("Analyze twice proposed\n%v\nand\n%v", proposals, again)
		}
		for _, p := range proposals {
			proposed(rt, s, v, p)
			done, err := s.Execute(t.Context(), v, p)
			if err != nil {
				if !errors.Is(err, strategy.ErrNoGain) && !errors.Is(err, summarize.ErrBudget) {
					rt.Fatalf("Execute: %v", err)
				}
				continue
			}
			executed(rt, s, v, p, done.Record)
		}
		if v.Total() != before || len(v.Records()) != 0 {
			rt.Fatal("Analyze or Execute changed the view")
		}
	})
}

func proposed(t rapid.TB, s strategy.Strategy, v *strategy.View, p strategy.Proposal) {
	t.Helper()
	if p.Strategy != s.Name() || p.Reason == "" || p.EstimatedTokensFreed <= 0 {
		t.Fatalf("a proposal of %q for %d tokens, because of %q", p.Strategy, p.EstimatedTokensFreed, p.Reason)
	}
	if err := p.Span.Check(v.Thread); err != nil {
		t.Fatal(err)
	}
}

func executed(t rapid.TB, s strategy.Strategy, v *strategy.View, p strategy.Proposal, record plan.Record) {
	t.Helper()
	if !reflect.DeepEqual(record.Covers(), p.Span) {
		t.Fatalf("the record covers %v, the proposal %v", record.Covers(), p.Span)
	}
	made := record.Made()
	if made.Strategy != s.Name() || made.Reason == "" {
		t.Fatalf("the record is of %q, because of %q", made.Strategy, made.Reason)
	}
	least := p.EstimatedTokensFreed - int(toleranceShare*float64(made.TokensBefore)) - toleranceTokens
	if made.Freed() <= 0 || made.Freed() < least {
		t.Fatalf("%d tokens were to be freed, %d of %d were", p.EstimatedTokensFreed, made.Freed(), made.TokensBefore)
	}
	for _, id := range record.Covers().MessageIDs {
		i, _ := v.Thread.Index(id)
		output := v.Thread.At(i).Role == thread.Tool || v.Thread.At(i).Kind == thread.Injected
		shorter := !record.Action().Removes() || record.Covers().Len() == 1 && record.Action() != plan.Drop && output
		switch {
		case v.Pinned[i]:
			t.Fatalf("message %d is pinned", i)
		case v.Anchored[i] && !shorter:
			t.Fatalf("message %d may not go", i)
		case i >= v.Tail && !shorter:
			t.Fatalf("message %d is in the protected tail, which begins at %d", i, v.Tail)
		}
	}
	draft := plan.Plan{ThreadID: v.Thread.ID(), ThreadVersion: v.Thread.Version()}
	draft.Add(record)
	if err := draft.Validate(v.Thread); err != nil {
		t.Fatal(err)
	}
	sent(t, v, &draft, made)
}

// sent checks a record's figures against the prompt itself. A log that has to
// be put right takes a little more or less than its messages do.
func sent(t rapid.TB, v *strategy.View, p *plan.Plan, made plan.Origin) {
	t.Helper()
	out, manifest, err := render.Render(v.Thread, p, nil, &render.Options{Profile: v.Profile})
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Repairs) > 0 {
		return
	}
	total := 0
	for n := range out.Messages {
		if o := manifest.Messages[n]; o.ID != "" || !o.Synthetic {
			total += Count(&out.Messages[n])
		}
	}
	if want := v.Total() - made.Freed(); total != want {
		t.Fatalf("the record says that %d tokens stay, the prompt takes %d", want, total)
	}
}
