package summarize

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/summary"
)

// Extractive summarises without a model. Every item is text that stands in the
// messages, with their ids as sources; the same input gives the same bytes.
//
// The zero value is ready to use and counts tokens as a fourth of the bytes. It
// keeps what it found in messages, so summarising a thread that grew by a step
// costs that step; keep one for many calls. It is safe for concurrent use and
// must not be copied after the first.
type Extractive struct {
	// Counter counts the tokens of a text the way the budget is meant. It must
	// be pure and safe for concurrent use. Default: bytes divided by 4, rounded up.
	Counter func(string) int

	memo memo
}

var _ Summarizer = (*Extractive)(nil)

// Summarize implements Summarizer. Besides ErrBudget its only errors are those
// of ctx.
func (e *Extractive) Summarize(ctx context.Context, in Input) (summary.Summary, error) {
	if err := ctx.Err(); err != nil {
		return summary.Summary{}, err
	}
	count := e.Counter
	if count == nil {
		count = func(s string) int { return (len(s) + 3) / 4 }
	}
	p := newPool(&in, e.memo.facts)
	out, err := choose(p, in.Budget, func(s string) int { return e.memo.tokens(count, s) }, count)
	if err != nil {
		return summary.Summary{}, err
	}
	if in.Previous != nil {
		out.Span = summary.Merge(summary.Summary{Span: in.Previous.Span}, summary.Summary{Span: out.Span}).Span
	}
	return out, nil
}
