package strategy

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// UndoneToolChanges returns, of the changes of tools before the position end, those that a plan shows and later
// ones among them repeat or undo: the others give the same tools, whatever was there before the first. It looks
// at nothing from end on, so that the beginning of the prompt stays as it is while the conversation goes on.
// Those at the positions of keep stay.
func UndoneToolChanges(t *thread.Thread, pairs *thread.Pairing, actions plan.Actions, end int, keep []int) (at []int) {
	type history struct { // of a tool
		at     []int
		form   string
		locked bool // all of them stay
	}
	tools, changes, stays := map[string]*history{}, map[int][]hosted.ToolChange{}, map[int]bool{}
	var waiting []int // messages that stay
	stay := func(at int) {
		if !stays[at] {
			stays[at], waiting = true, append(waiting, at)
		}
	}
	lock := func(h *history) {
		if h.locked {
			return
		}
		h.locked = true
		for _, at := range h.at {
			stay(at)
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
				tools[c.Tool] = &history{form: c.Form}
			}
			tools[c.Tool].at = append(tools[c.Tool].at, i)
		}
		if first, last := pairs.Unit(i); !only || first != last || pairs.Open(i) || slices.Contains(keep, i) {
			stay(i)
		}
	}
	for i, all := range changes {
		for _, c := range all {
			h := tools[c.Tool]
			if i == h.at[len(h.at)-1] {
				stay(i)
			}
			if c.Form != h.form {
				lock(h)
			}
			if set := tools[c.Set]; set != nil && set != h { // what is said of all tools of a server is said of this one
				lock(h)
				lock(set)
			}
		}
	}
	for len(waiting) > 0 {
		at := waiting[0]
		waiting = waiting[1:]
		for _, c := range changes[at] {
			if h := tools[c.Tool]; at != h.at[len(h.at)-1] {
				lock(h)
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
