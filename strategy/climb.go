package strategy

import (
	"context"
	"errors"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
)

// Ladder is a list of strategies. It climbs them by aggressiveness, gentlest
// first, and those of equal aggressiveness in the order given.
type Ladder []Strategy

// Climb applies proposals one by one until the messages fit, or no rung has any
// left. Before it, results that no tool gives a second time are externalized, as far as a
// tenth of the room allows. Before anything is dropped, the gentler rungs try once
// more in the room that others have made. What was taken too much is given back;
// records of the plan in force (View.Keep) stay. The error is the context's, or
// the joined errors of proposals that could not be executed when in the end the
// messages do not fit; fits tells.
func (l Ladder) Climb(ctx context.Context, v *View) (fits bool, err error) {
	rungs := slices.Clone(l)
	slices.SortStableFunc(rungs, func(a, b Strategy) int { return a.Aggressiveness() - b.Aggressiveness() })
	var failed []error
	exact := false
	for _, rung := range rungs {
		if s, ok := rung.(Summarize); ok && s.exact {
			exact = true
			s.hold(v)
		}
	}
	if v.Over() > 0 && !exact {
		if err := v.holdLasting(ctx, rungs); err != nil {
			return false, err
		}
	}
	// What gentler rungs could not do for want of room, they may be able to once
	// harsher ones have made some: they try again before anything is dropped.
	order := rungs
	if drop := slices.IndexFunc(rungs, func(s Strategy) bool { return s.Aggressiveness() >= dropRung }); drop > 0 {
		order = slices.Concat(rungs[:drop], rungs[:drop], rungs[drop:])
	}
	for _, rung := range order {
		s, whole := rung.(Summarize)
		whole = whole && s.exact // a cut takes all before it, not just enough
		if v.Over() <= 0 {
			break
		}
		for _, p := range rung.Analyze(v) {
			if v.Over() <= 0 && !whole {
				break
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			v.proposed = append(v.proposed, p)
			done, err := rung.Execute(ctx, v, p)
			v.summaries = append(v.summaries, done.Summaries...)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			v.decide(done.Record, true)
		}
	}
	if v.Over() > 0 {
		return false, errors.Join(failed...)
	}
	v.tellOnce()
	v.giveBack(exact)
	for _, rung := range slices.Backward(rungs) {
		if f, ok := rung.(filler); ok {
			f.Fill(ctx, v)
		}
	}
	return true, nil
}

// filler is a rung that can use room that is left over when all is done. The
// harshest rung has the first turn: it took away most.
type filler interface {
	Fill(ctx context.Context, v *View)
}

// giveBack takes records over single messages back, the newest message first,
// while the whole still fits: the last proposal often frees more than was
// needed. Summaries stay where a cut was asked for.
func (v *View) giveBack(exact bool) {
	for i := len(v.messages) - 1; i >= 0; i-- {
		c := v.cover[i]
		if c < v.inForce || v.records[c].Covers().Len() != 1 || v.records[c].Action() == plan.Drop {
			continue
		}
		if !v.inPlace(i) && v.records[c].Action() != plan.Clear || exact && v.records[c].Action() == plan.Summarize {
			continue
		}
		if v.superseded[i] == "" && v.total-v.now[i]+v.Sizes[i] <= v.Room {
			v.undo(c)
		}
	}
}
