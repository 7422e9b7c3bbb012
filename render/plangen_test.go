package render_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// drawnPlan draws a plan that is valid for the thread: summaries, pointers and drops over
// spans between legal cuts, with pinned messages left out and results replaced by a record
// of their own; placeholders anywhere; texts in place of results whose calls stay, several
// of them under one record.
func drawnPlan(th *thread.Thread) *rapid.Generator[*plan.Plan] {
	return rapid.Custom(func(t *rapid.T) *plan.Plan {
		g := &planGenerator{t: t, th: th, pairs: thread.Pair(th), free: make([]bool, th.Len())}
		g.plan = &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID()}
		for i := range g.free {
			g.free[i] = !g.pairs.Open(i)
		}
		g.remove()
		for i := range g.free {
			first, last := g.pairs.Unit(i)
			g.free[i] = g.free[i] && first == last // what ran at the provider goes whole, or stays
		}
		g.inPlace()
		g.clear()
		last := 0
		for id := range g.plan.Actions() {
			at, _ := th.Index(id)
			last = max(last, at+1)
		}
		// The thread may have grown since the plan was made.
		g.plan.ThreadVersion = rapid.SampledFrom([]int{last, th.Len(), (last + th.Len() + 1) / 2}).Draw(t, "version")
		if err := g.plan.Validate(th); err != nil {
			t.Fatalf("the generator made a plan that does not hold: %v", err)
		}
		return g.plan
	})
}

// planFact is the text of the n-th record of a plan, counted from 1; placeholders
// and drops have none.
func planFact(n int) string { return fmt.Sprintf("what record %d. stands for", n) }

type planGenerator struct {
	t     *rapid.T
	th    *thread.Thread
	pairs *thread.Pairing
	plan  *plan.Plan
	free  []bool // messages that no record covers and that may be touched
	made  int
}

var removals = []plan.Action{plan.Summarize, plan.Externalize, plan.Drop}

// remove takes stretches between legal cuts away.
func (g *planGenerator) remove() {
	points := cut.Legal(g.th, g.pairs)
	var cuts []int
	for i := range g.th.Len() + 1 {
		if points.Legal(i) && rapid.IntRange(0, 2).Draw(g.t, "cut") == 0 {
			cuts = append(cuts, i)
		}
	}
	for n := 1; n < len(cuts); n++ {
		if rapid.IntRange(0, 2).Draw(g.t, "keep") == 0 {
			continue
		}
		var span, apart []int
		for i := cuts[n-1]; i < cuts[n]; i++ {
			switch {
			case !g.paired(i) && rapid.IntRange(0, 5).Draw(g.t, "pinned") == 0:
			case g.th.At(i).Role == thread.Tool && rapid.IntRange(0, 5).Draw(g.t, "apart") == 0:
				apart = append(apart, i)
			default:
				span = append(span, i)
			}
		}
		g.record(rapid.SampledFrom(removals).Draw(g.t, "action"), span)
		g.record(rapid.SampledFrom(removals).Draw(g.t, "action apart"), apart)
	}
}

// paired reports whether the message has calls with results, or is one.
func (g *planGenerator) paired(i int) bool {
	_, answers := g.pairs.Call(i)
	first, last := g.pairs.Unit(i)
	return answers || first < last || len(g.pairs.Results(i)) > 0
}

// inPlace replaces results whose calls stay, one or several to a record.
func (g *planGenerator) inPlace() {
	var at []int
	for i := range g.free {
		if call, ok := g.pairs.Call(i); ok && g.free[i] && g.free[call] && rapid.IntRange(0, 3).Draw(g.t, "in place") == 0 {
			at = append(at, i)
		}
	}
	for len(at) > 0 {
		n := rapid.IntRange(1, min(3, len(at))).Draw(g.t, "together")
		g.record(rapid.SampledFrom(removals[:2]).Draw(g.t, "action in place"), at[:n])
		at = at[n:]
	}
}

func (g *planGenerator) clear() {
	var at []int
	for i := range g.free {
		if g.free[i] && rapid.IntRange(0, 4).Draw(g.t, "clear") == 0 {
			at = append(at, i)
		}
	}
	for len(at) > 0 {
		n := rapid.IntRange(1, min(4, len(at))).Draw(g.t, "together")
		g.record(plan.Clear, at[:n])
		at = at[n:]
	}
}

func (g *planGenerator) record(action plan.Action, at []int) {
	if len(at) == 0 {
		return
	}
	g.made++
	ids := make([]thread.ID, len(at))
	for n, i := range at {
		ids[n] = g.th.At(i).ID
		g.free[i] = false
	}
	span, err := thread.NewSpan(g.th, slices.Clone(ids)...)
	if err != nil {
		g.t.Fatal(err)
	}
	sum := summary.Summary{Facts: []summary.Item{{Text: planFact(g.made)}}}
	switch action {
	case plan.Clear:
		fields := rapid.SampledFrom([]thread.Fields{nil, {"exit_code": 1.0, "path": "a\"b\n"}}).Draw(g.t, "fields")
		g.plan.Add(plan.Clearing{Span: span, PreservedFields: fields})
	case plan.Summarize:
		g.plan.Add(plan.Summarization{Span: span, Summary: sum})
	case plan.Externalize:
		g.plan.Add(plan.Externalization{Span: span, ArtifactID: fmt.Sprintf("art_%d", g.made), Summary: sum})
	default:
		g.plan.Add(plan.Removal{Span: span})
	}
}
