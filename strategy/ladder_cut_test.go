package strategy_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/strategytest"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// summarized are the positions that the records summarize; every other record is
// an error.
func summarized(t testing.TB, th *thread.Thread, records []plan.Record) []int {
	t.Helper()
	var at []int
	for _, r := range records {
		if r.Action() != plan.Summarize {
			t.Errorf("a record that is no summary: %s over %v", r.Action(), r.Covers())
		}
		for _, id := range r.Covers().MessageIDs {
			i, _ := th.Index(id)
			at = append(at, i)
		}
	}
	slices.Sort(at)
	return at
}

// A cut keeps what it says and no more, however much room there is: one message
// and ten are different prompts.
func TestCutKeepsWhatItSays(t *testing.T) {
	th := session(t, 30, 4000)
	n := th.Len()
	for _, c := range []struct {
		keep cut.Policy
		want int // messages that stay
	}{
		{cut.LastMessages{N: 1}, 1},
		{cut.LastMessages{N: 2}, 2},
		{cut.LastMessages{N: 3}, 4}, // the third is a result: its call stays too
		{cut.LastMessages{N: 10}, 10},
		{cut.LastTurns{N: 1}, 1},
		{cut.LastTurns{N: 3}, 9},
		{cut.LastTokens{N: 100, SplitTurns: true}, 2},
		{cut.Ratio{Keep: 0.1}, 12},
	} {
		for _, share := range []int{95, 70, 50} {
			for _, level := range strategy.Protections()[:2] {
				t.Run(fmt.Sprintf("%T%v of %d %%, level %d", c.keep, c.keep, share, level), func(t *testing.T) {
					v := strategytest.View(th, render.Profile{}, 0)
					v.Room = v.Total() * share / 100
					v.Protect(level)
					at := summarized(t, th, climb(t, strategy.Cut(c.keep), v))
					if kept := n - len(at); kept != c.want || at[len(at)-1] != n-c.want-1 {
						t.Errorf("%d messages stay, want the newest %d; the last that is summarized is %d of %d", kept, c.want, at[len(at)-1], n)
					}
				})
			}
		}
	}
}

// Over any thread, what a cut keeps is shown as it is where it fits, and nothing
// before the cut is, but for calls that wait, a request that nobody has answered, and
// what a summary would not make smaller.
func TestCutHolds(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		v := strategytest.View(th, render.For(rapid.SampledFrom(threadgen.APIs).Draw(rt, "api")), 0)
		v.Room = v.Total() * rapid.IntRange(20, 95).Draw(rt, "percent") / 100
		v.Protect(rapid.SampledFrom(strategy.Protections()).Draw(rt, "protection"))
		keep := cut.LastMessages{N: rapid.IntRange(1, 20).Draw(rt, "keep")}
		at := keep.Cut(cut.Legal(th, v.Pairs), nil)
		fits, _ := strategy.Cut(keep).Climb(t.Context(), v)
		if !fits {
			return
		}
		p := plan.Plan{ThreadID: th.ID(), ThreadVersion: th.Version()}
		for _, r := range v.Records() {
			p.Add(r)
		}
		if err := p.Validate(th); err != nil {
			rt.Fatal(err)
		}
		actions := p.Actions()
		took, split := false, false // a short stretch before an instruction may not be worth a summary
		for i, m := range th.All() {
			split = split || i < at && (m.IsInstruction() || m.StartsTurn() && !answeredFrom(th, i))
			took = took || i < at && actions[m.ID].Action == plan.Summarize
		}
		for i, m := range th.All() {
			if took && !split && i < at && actions[m.ID].Action == plan.Include && !v.Pinned[i] && !v.Anchored[i] {
				rt.Fatalf("message %d of %d stays, the cut is %d", i, th.Len(), at)
			}
		}
	})
}

// answeredFrom reports whether the model said something after a position.
func answeredFrom(th *thread.Thread, i int) bool {
	return slices.ContainsFunc(th.Messages()[i:], func(m thread.Message) bool { return m.Role == thread.Assistant })
}
