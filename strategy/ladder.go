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
// left. What was taken too much is given back. The error is the context's, or
// the joined errors of proposals that could not be executed when in the end the
// messages do not fit; fits tells.
func (l Ladder) Climb(ctx context.Context, v *View) (fits bool, err error) {
	rungs := slices.Clone(l)
	slices.SortStableFunc(rungs, func(a, b Strategy) int { return a.Aggressiveness() - b.Aggressiveness() })
	var failed []error
	for _, rung := range rungs {
		if v.Over() <= 0 {
			break
		}
		for _, p := range rung.Analyze(v) {
			if v.Over() <= 0 {
				break
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			v.proposed = append(v.proposed, p)
			record, err := rung.Execute(ctx, v, p)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			v.decide(record, counts(rung))
		}
	}
	if v.Over() > 0 {
		return false, errors.Join(failed...)
	}
	v.giveBack()
	for _, rung := range slices.Backward(rungs) {
		if f, ok := rung.(filler); ok {
			f.Fill(ctx, v)
		}
	}
	return true, nil
}

// counts reports whether a rung is one whose records say what cost gave for them.
func counts(rung Strategy) bool {
	switch rung.(type) {
	case Clear, Externalize:
		return true
	}
	return false
}

// filler is a rung that can use room that is left over when all is done. The
// harshest rung has the first turn: it took away most.
type filler interface {
	Fill(ctx context.Context, v *View)
}

// giveBack takes records over single messages back, the newest message first,
// while the whole still fits: the last proposal often frees more than was
// needed.
func (v *View) giveBack() {
	for i := len(v.messages) - 1; i >= 0; i-- {
		c := v.cover[i]
		if c < 0 || v.records[c].Covers().Len() != 1 || v.records[c].Action() == plan.Drop {
			continue
		}
		if !v.inPlace(i) && v.records[c].Action() != plan.Clear {
			continue
		}
		if v.superseded[i] == "" && v.total-v.now[i]+v.Sizes[i] <= v.Room {
			v.undo(c)
		}
	}
}
