package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
)

// Some results no tool gives a second time: what a search of the web found, what a
// sub-agent reported, what the user answered. They are externalized or kept.
// So before any rung summarizes or drops their span, what they say is externalized: a
// pointer stands in their place at first, and later, when a summary takes the
// pointer too, the summary names it.

// lasting reports whether the result at i must be externalized or kept: its tool is
// declared non-replayable, or replayable and its source has changed since.
func (v *View) lasting(i int) bool {
	r, ok := v.messages[i].Result()
	if !ok {
		return false
	}
	switch v.Tools.Durability(r) {
	case thread.NonReplayable:
		return true
	case thread.Replayable:
		changed, known := v.drifted(i, r)
		return known && changed
	}
	return false
}

// drifted reports whether the source of the replayable result at i has changed since
// , as far as that is known.
func (v *View) drifted(i int, r thread.ToolResult) (changed, known bool) {
	if r.Determinism == nil || v.Current == nil {
		return false, false
	}
	now, known := v.Current(v.call(i))
	return known && r.Determinism.Changed(now), known
}

// callShare is how many times as large as their results calls and results may be that
// are kept as they are: a sub-agent that was started in the background answers a task of a
// page with a line.
const callShare = 2

// holdLasting puts the lasting results before the tail aside, the newest first, and
// keeps their pointers and calls from summaries and drops of this plan, as far as
// there is room for that. The others go with their span, named by it.
func (v *View) holdLasting(ctx context.Context, rungs []Strategy) error {
	room := v.part(v.parts().lasting)
	if room == 0 || v.level >= LastStep {
		return ctx.Err()
	}
	may := slices.ContainsFunc(rungs, func(s Strategy) bool { return s.Name() == Externalize{}.Name() })
	for i := v.Tail - 1; i >= 0; i-- {
		if v.cover[i] >= 0 || !v.lasting(i) {
			continue
		}
		keep := min(max(v.Sizes[i]/10, minStub), maxStub) + stubFrame
		small := v.Sizes[i] <= 2*keep || !may || !v.Shrinkable(i)
		group := v.linked(i)
		size := v.sum(v.now, group)
		if r, _ := v.messages[i].Result(); small && toolpolicy.ClassOf(r.Tool) == toolpolicy.Agent && size > callShare*v.answered(group) {
			continue // the summary names them
		}
		if !small {
			size += keep - v.Sizes[i]
		}
		if size > room {
			continue
		}
		room -= size
		for _, g := range group {
			v.held[g] = true
		}
		if small {
			continue // it is kept as it is
		}
		p := Proposal{
			Strategy: Externalize{}.Name(), Span: v.span([]int{i}), EstimatedTokensFreed: v.Sizes[i] - keep, Room: keep,
			Reason: "its tool gives it only once",
		}
		v.proposed = append(v.proposed, p)
		if done, err := (Externalize{}).Execute(ctx, v, p); err == nil {
			v.decide(done.Record, true)
		}
	}
	return ctx.Err()
}

// answered is how many tokens of these messages are results.
func (v *View) answered(group []int) int {
	size := 0
	for _, i := range group {
		if v.messages[i].Role == thread.Tool {
			size += v.now[i]
		}
	}
	return size
}

// references are pointers to the lasting results at these positions, and, where all is
// set, to whatever else was externalized of them, the newest first. Those that must be
// kept are the lasting ones.
func (v *View) references(at []int, all bool) (refs []summary.ArtifactReference, keep []plan.Kept) {
	for _, i := range slices.Backward(at) {
		id := v.pointers[v.messages[i].ID]
		if c := v.cover[i]; c >= 0 {
			if x, ok := v.records[c].(plan.Externalization); ok {
				id = x.ArtifactID
			}
		}
		lasting := v.lasting(i)
		if lasting && id == "" {
			r, _ := v.messages[i].Result()
			id = v.Name(v.Thread.ID(), r.Text())
		}
		if id == "" || !lasting && !all {
			continue
		}
		refs = append(refs, v.reference(i, id))
		if lasting {
			keep = append(keep, plan.Kept{ArtifactID: id, MessageID: v.messages[i].ID})
		}
	}
	return refs, keep
}

func (v *View) reference(i int, id string) summary.ArtifactReference {
	m := &v.messages[i]
	source := "this message"
	if r, ok := m.Result(); ok {
		source = r.Tool
	}
	return summary.ArtifactReference{
		ArtifactID: id, Description: fmt.Sprintf("what %s gave in turn %d", source, m.Turn) + v.subject(i), Turn: m.Turn, Sources: []thread.ID{m.ID},
	}
}
