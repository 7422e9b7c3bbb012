package strategy

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// clearable reports whether the result at i may be cleared: an ephemeral or anchoring one
// always, a replayable one only while its source verifiably has not changed, a
// non-replayable one never, nor one that is expensive to have again.
func (v *View) clearable(i int) bool {
	r, ok := v.messages[i].Result()
	if !ok || v.Tools.Policy(r.Tool).ReplayCost == toolpolicy.Expensive {
		return false
	}
	switch v.Tools.Durability(r) {
	case thread.Ephemeral, thread.Anchoring:
		return true
	case thread.Replayable:
		changed, known := v.drifted(i, r)
		return known && !changed
	}
	return false
}

// lasting reports whether the result at i must be externalized or kept, since no tool can
// give it again: its tool is declared non-replayable (what a search of the web found, what
// a sub-agent reported, what the user answered), or replayable and its source has changed.
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

// drifted reports whether the source of the replayable result at i has changed, as far as
// that is known.
func (v *View) drifted(i int, r thread.ToolResult) (changed, known bool) {
	if r.Determinism == nil || v.Current == nil {
		return false, false
	}
	now, known := v.Current(v.call(i))
	return known && r.Determinism.Changed(now), known
}

// callShare: calls with results that last are kept as they are only up to this multiple of
// the results' size. A sub-agent that was started in the background answers a task of a
// page with a line.
const callShare = 2

// keepLasting externalizes the lasting results before the tail, the newest first, and
// keeps their pointers and calls from the summaries and drops of this plan, as far as
// there is room for that. The others are removed with their span, whose summary names
// them.
func (v *View) keepLasting(ctx context.Context, rungs []Strategy) error {
	room := v.part(v.parts().lasting)
	if room == 0 || v.level >= LastStep {
		return ctx.Err()
	}
	type load struct{ size, answered int } // of a group now, in tokens
	loads := map[*group]load{}
	may := slices.ContainsFunc(rungs, func(s Strategy) bool { return s.Name() == Externalize{}.Name() })
	for i := v.Tail - 1; i >= 0; i-- {
		if v.cover[i] >= 0 || !v.lasting(i) {
			continue
		}
		keep := min(max(v.Sizes[i]/10, minStub), maxStub) + stubFrame
		small := v.Sizes[i] < keep+minGain || !may || !v.storable(i) || !v.Shrinkable(i)
		group := v.linked(i)
		takes, known := loads[group]
		if !known {
			takes = load{sum(v.now, group.at), v.answered(group.at)}
			loads[group] = takes
		}
		size := takes.size
		if r, _ := v.messages[i].Result(); small && toolclass.ClassOf(r.Tool) == toolclass.Agent && size > callShare*takes.answered {
			continue // the summary names them
		}
		if !small {
			size += keep - v.Sizes[i]
		}
		if size > room {
			continue
		}
		room -= size
		for _, g := range group.at {
			v.lastingKept[g] = true
		}
		if small {
			continue // it is kept as it is
		}
		p := Proposal{
			Strategy: Externalize{}.Name(), Span: v.span([]int{i}), EstimatedTokensFreed: v.Sizes[i] - keep, Room: keep,
			Reason: "its tool gives it only once",
		}
		v.proposed = append(v.proposed, p)
		_ = v.execute(ctx, Externalize{}, p) // a summary will name it
		delete(loads, group)
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

// references are pointers to the lasting results at these positions and, with all, to
// whatever else was externalized of them, the newest first. keep are the lasting ones.
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
			if r, _ := v.messages[i].Result(); r.Text() != "" {
				id = v.Name(v.Thread.ID(), r.Text())
			}
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
