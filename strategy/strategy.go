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

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

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
