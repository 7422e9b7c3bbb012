package strategy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Strategy is one way to free room.
type Strategy interface {
	// Name is written into every record that the strategy makes.
	Name() string
	// Aggressiveness orders the rungs of a ladder: lower comes first.
	Aggressiveness() int
	// Analyze proposes what could be done to the view as it is now, in the
	// order in which it should be done. It changes nothing.
	Analyze(v *View) []Proposal
	// Execute makes the record of one proposal of Analyze. An error leaves the
	// view as it was; the ladder then goes on without the proposal.
	Execute(ctx context.Context, v *View, p Proposal) (Executed, error)
}

// Executed is a record with the tokens that it takes, and the summaries that were asked for on the way to it,
// those of an error too.
type Executed struct {
	Record    plan.Record
	Summaries []summarize.Report
}

// Proposal is a compaction that could be made.
type Proposal struct {
	Strategy string
	Span     thread.Span
	// EstimatedTokensFreed is how much smaller the prompt should become, in tokens.
	EstimatedTokensFreed int
	Reason               string
	// Room is how many tokens what stands in place of the span may take; 0
	// where the strategy has no choice.
	Room int
}
