package strategy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// ErrNoGain is wrapped by the errors of Execute when the record would not be smaller than
// what it replaces.
var ErrNoGain = errors.New("nothing would be freed")

// Clear replaces tool results by their placeholder: tool, outcome and key fields. It
// leaves alone what the durability of the tool forbids. The calls keep their arguments,
// unless Arguments is set.
type Clear struct {
	// Arguments also shortens the long arguments of old, completed calls, but never those
	// of the last call of a tool: models copy what they see.
	Arguments bool
}

// Name returns "clear".
func (Clear) Name() string { return "clear" }

// Aggressiveness puts it between externalize and summarize.
func (Clear) Aggressiveness() int { return clearRung }

// Analyze proposes results one by one, superseded ones first, then the oldest, and then
// the calls with long arguments.
func (s Clear) Analyze(v *View) []Proposal {
	proposals := v.results(s.Name(), func(i int, _ string) (keep int, reason string) {
		if v.cover[i] >= 0 || !v.clearable(i) {
			return -1, ""
		}
		// Counting the placeholder is cheap beside counting the result.
		keep, _ = v.cost(plan.Clearing{PreservedFields: v.preserved(i)}, []int{i})
		return keep, "older than the protected tail"
	})
	if s.Arguments {
		proposals = append(proposals, s.arguments(v)...)
	}
	return proposals
}

func (s Clear) arguments(v *View) []Proposal {
	var proposals []Proposal
	last := map[string]int{}
	for i := range v.messages {
		for _, c := range v.messages[i].Calls() {
			last[c.Name] = i
		}
	}
	for i := range v.messages {
		calls := v.messages[i].Calls()
		if len(calls) == 0 || i >= v.Tail || !v.Shrinkable(i) || v.cover[i] >= 0 || len(v.Pairs.Missing(i)) > 0 {
			continue
		}
		if slices.ContainsFunc(calls, func(c thread.ToolCall) bool {
			return last[c.Name] == i || toolclass.ClassOf(c.Name) == toolclass.Notes // no summary shows them yet
		}) {
			continue
		}
		if keep, _ := v.cost(plan.Clearing{}, []int{i}); keep < v.now[i] {
			proposals = append(proposals, Proposal{
				Strategy: s.Name(), Span: v.span([]int{i}), EstimatedTokensFreed: v.now[i] - keep,
				Reason: "long arguments of a completed call", Room: keep,
			})
		}
	}
	return proposals
}

// Execute makes the placeholder.
func (s Clear) Execute(_ context.Context, v *View, p Proposal) (Executed, error) {
	at := v.positions(p.Span)
	record := plan.Clearing{Span: p.Span, Origin: v.origin(s.Name(), p.Reason, at)}
	if v.messages[at[0]].Role == thread.Tool {
		record.PreservedFields = v.preserved(at[0])
	}
	record.TokensAfter, _ = v.cost(record, at)
	if record.TokensAfter >= record.TokensBefore {
		return Executed{}, fmt.Errorf("strategy.Clear: message %s: %w", p.Span.First(), ErrNoGain)
	}
	return Executed{Record: record}, nil
}
