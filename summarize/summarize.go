// Package summarize makes structured summaries of spans.
package summarize

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Input is what is to be summarized.
type Input struct {
	// Messages is the span, in thread order, with ids and turns set.
	Messages []thread.Message
	// Previous is the summary of an earlier compaction; may be nil.
	Previous *summary.Summary
	// Context is what stays in the prompt after the span, in order.
	Context []thread.Message
	// Budget is what the rendered summary may take, in tokens.
	Budget int
}

// Summarizer makes summaries. Implementations are safe for concurrent use.
type Summarizer interface {
	// Summarize returns a summary whose rendering takes at most in.Budget tokens.
	Summarize(ctx context.Context, in Input) (summary.Summary, error)
}
