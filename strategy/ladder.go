// Package strategy turns pressure into plan records. A strategy is one rung of a ladder:
// it looks at a View and proposes what it would do (Analyze, pure, also for a dry run),
// and makes the record of one proposal (Execute, which may ask a summarizer). The Ladder
// climbs from the gentlest rung to the harshest and stops as soon as the messages fit.
//
// A plan grows: View.Keep takes over the records of the plan in force, and the climb adds
// to them. What a record has made of a message stays as it is, byte for byte.
//
// A View is used by one goroutine at a time. Strategies and ladders are values that may be
// shared. All sizes are tokens, as Given.Count counts them.
package strategy

import (
	"context"
	"errors"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Ladder is a list of strategies. It climbs them by aggressiveness, gentlest first; those
// of equal aggressiveness in the order given.
type Ladder []Strategy

// Climb applies proposals one by one until the messages fit, or no rung has any left. Where what is pinned alone
// exceeds the room it asks none, and returns false without an error. It begins with externalizing results that no
// tool can give again, as far as a tenth of the room allows. Before anything is dropped, the gentler rungs try once
// more, in the room that others have made. What was taken unnecessarily is given back; records of the plan in force
// (View.Keep) stay. The error is the context's or, where the messages do not fit in the end, joins those of the
// proposals that failed.
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
	if held := slices.DeleteFunc(v.PinnedPositions(), func(i int) bool { return v.cover[i] >= 0 }); sum(v.now, held) > v.Room { // no rung touches them
		return false, nil
	}
	if v.Over() > 0 && !exact {
		if err := v.keepLasting(ctx, rungs); err != nil {
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
		if v.Over() <= 0 {
			break
		}
		for _, p := range rung.Analyze(v) {
			if v.Over() <= 0 && !(exact && rung.Aggressiveness() == summarizeRung) {
				break // an exact cut takes all before it, not just enough
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			v.proposed = append(v.proposed, p)
			if err := v.execute(ctx, rung, p); err != nil {
				failed = append(failed, err)
			}
		}
	}
	if v.Over() > 0 {
		return false, errors.Join(failed...)
	}
	v.keepNewestWork()
	v.giveBack(exact)
	for _, rung := range slices.Backward(rungs) {
		if f, ok := rung.(filler); ok {
			f.Fill(ctx, v)
		}
	}
	return true, ctx.Err()
}

// execute makes the record of a proposal and decides it.
func (v *View) execute(ctx context.Context, s Strategy, p Proposal) error {
	done, err := s.Execute(ctx, v, p)
	v.summaries = append(v.summaries, done.Summaries...)
	if err == nil {
		v.decide(done.Record, true)
	}
	return err
}

// filler is a rung that can use room that is left in the end. The harshest rung comes
// first, since it took most.
type filler interface {
	Fill(ctx context.Context, v *View)
}

// giveBack undoes records over single messages, the newest message first, while the whole
// still fits: the last proposal often frees more than was needed. Summaries stay where an
// exact cut was asked for.
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

// The aggressiveness of our rungs. Others fit in between.
const (
	externalizeRung = 10
	clearRung       = 20
	summarizeRung   = 30
	dropRung        = 40
)

// Auto is the default ladder: the newest part stays whole except for results that would
// fill it alone, and older messages are summarized, since lines chosen from all of them
// hold more of what later steps need than whole messages or the beginnings of results do.
// Where that is not enough, results of the kept part are externalized or cleared.
func Auto() Ladder {
	return Ladder{
		Externalize{Large: true}, Summarize{},
		AfterSummaries(Externalize{}), AfterSummaries(Clear{Arguments: true}), Drop{},
	}
}

// Fresh is the ladder of Auto, but for its summaries: of older messages they hold what the user said
// and laid down and where the work stands, each time anew and in one piece. Whole messages take the room.
func Fresh() Ladder {
	l := Auto()
	for i, rung := range l {
		if _, ok := rung.(Summarize); ok {
			l[i] = Summarize{state: true}
		}
	}
	return l
}

// IsFresh reports whether the ladder makes its summaries anew at each compaction.
func (l Ladder) IsFresh() bool { return l.summarizes(func(s Summarize) bool { return s.state }) }

// Cut is the ladder that summarizes everything before a cut and keeps what follows it,
// also where there would be room for more. When the kept part itself does not fit, it
// keeps less, and clears.
func Cut(keep cut.Policy) Ladder {
	return Ladder{Summarize{Keep: keep, exact: true}, AfterSummaries(Clear{Arguments: true}), Drop{}}
}

// Grows reports whether later compactions can add to the summaries that the ladder makes:
// it chooses how much it summarizes itself.
func (l Ladder) Grows() bool {
	return l.summarizes(func(s Summarize) bool { return s.Keep == nil && !s.state })
}

func (l Ladder) summarizes(as func(Summarize) bool) bool {
	return slices.ContainsFunc(l, func(rung Strategy) bool {
		s, ok := rung.(Summarize)
		return ok && as(s)
	})
}

// AfterSummaries moves a rung behind Summarize, whatever its own aggressiveness.
func AfterSummaries(s Strategy) Strategy { return afterSummaries{s} }

type afterSummaries struct{ Strategy }

func (afterSummaries) Aggressiveness() int { return summarizeRung + 1 }

// Strategy is one way to free room.
type Strategy interface {
	// Name is written into every record of the strategy.
	Name() string
	// Aggressiveness orders the rungs of a ladder: lower comes first.
	Aggressiveness() int
	// Analyze proposes what could be done to the view as it is now, in the order in which
	// it should be done. It changes nothing.
	Analyze(v *View) []Proposal
	// Execute makes the record of one proposal of Analyze. After an error the view is
	// unchanged, and the ladder continues without the proposal.
	Execute(ctx context.Context, v *View, p Proposal) (Executed, error)
}

// Executed is a record that knows its tokens. Summaries are the reports of all summaries
// that were asked for, also with an error.
type Executed struct {
	Record    plan.Record
	Summaries []summarize.Report
}

// Proposal is a possible record.
type Proposal struct {
	Strategy string
	Span     thread.Span
	// EstimatedTokensFreed is how much smaller the prompt should become, in tokens.
	EstimatedTokensFreed int
	Reason               string
	// Room is how many tokens the replacement of the span may take; 0 where the strategy
	// has no choice.
	Room int
}
