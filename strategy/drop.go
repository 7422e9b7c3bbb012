package strategy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
)

// Drop takes the oldest messages out of the prompt, so that they can only be searched for.
// It is the last rung. Results that no tool can give again are stored first (plan.Removal,
// Kept).
type Drop struct{}

// Name returns "drop".
func (Drop) Name() string { return "drop" }

// Aggressiveness makes it the last rung.
func (Drop) Aggressiveness() int { return dropRung }

// Analyze proposes the oldest part that is large enough, up to a legal cut.
func (s Drop) Analyze(v *View) []Proposal {
	points := cut.Legal(v.Thread, v.Pairs)
	var at []int
	freed := 0
	for i := range v.Tail {
		if points.Legal(i) && freed >= v.Over() && len(at) > 0 {
			break
		}
		if v.Free(i) {
			at = append(at, i)
			freed += v.now[i]
		}
	}
	if freed == 0 {
		return nil
	}
	return []Proposal{{Strategy: s.Name(), Span: v.span(at), EstimatedTokensFreed: freed, Reason: "oldest; gentler steps freed too little"}}
}

// Execute makes the record.
func (s Drop) Execute(_ context.Context, v *View, p Proposal) (Executed, error) {
	at := v.positions(p.Span)
	_, keep := v.references(at, false)
	record := plan.Removal{Span: p.Span, Kept: keep, Origin: v.origin(s.Name(), p.Reason, at)}
	return Executed{Record: record}, nil
}
