package strategy

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// UndoneToolChanges returns, of the changes of tools before the position end, those that a plan shows and later
// ones among them repeat or undo: the others give the same tools. It looks at nothing from end on, so that
// the beginning of the prompt stays as it is while the conversation goes on. Those at the positions of keep stay.
func UndoneToolChanges(t *thread.Thread, pairs *thread.Pairing, actions plan.Actions, end int, keep []int) (at []int) {
	type history struct { // of a tool
		at                   []int
		begins, ends, locked bool // the first change adds it; the last one does; all of them stay
	}
	tools, changes, stays := map[string]*history{}, map[int][]hosted.ToolChange{}, map[int]bool{}
	var waiting []int // messages that stay
	stay := func(at int) {
		if !stays[at] {
			stays[at], waiting = true, append(waiting, at)
		}
	}
	for i := range end {
		all, only := hosted.ToolChanges(t.At(i))
		if len(all) == 0 {
			continue
		}
		changes[i] = all
		for _, c := range all {
			if tools[c.Tool] == nil {
				tools[c.Tool] = &history{begins: c.Adds}
			}
			h := tools[c.Tool]
			h.at, h.ends = append(h.at, i), c.Adds
		}
		if first, last := pairs.Unit(i); !only || first != last || pairs.Open(i) || slices.Contains(keep, i) {
			stay(i)
		}
	}
	for _, h := range tools {
		if h.begins == h.ends { // else it is as it was before the first
			stay(h.at[len(h.at)-1])
		}
	}
	for len(waiting) > 0 {
		at := waiting[0]
		waiting = waiting[1:]
		for _, c := range changes[at] {
			if h := tools[c.Tool]; !h.locked && (at != h.at[len(h.at)-1] || h.begins != h.ends) {
				h.locked = true
				for _, other := range h.at {
					stay(other)
				}
			}
		}
	}
	for i := range end {
		if changes[i] != nil && !stays[i] && actions[t.At(i).ID].Action == plan.Include {
			at = append(at, i)
		}
	}
	return at
}
