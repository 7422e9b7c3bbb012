package summarize

import (
	"context"
	"slices"

	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Once asks Inner about no message twice, however often and for whatever spans a summary is made:
// what it told of a message is kept, and goes into each summary of it. For one goroutine.
type Once struct {
	Inner Summarizer
	// Told is what was told so far.
	Told summary.Summary
}

// Summarize implements Summarizer. The error is that of Inner.
func (o *Once) Summarize(ctx context.Context, in Input) (Result, error) {
	inside := isAmong(spanOf(&Input{Messages: in.Messages}).MessageIDs)
	in.Told = toldOf(o.Told, inside)
	out, err := o.Inner.Summarize(ctx, in)
	if err == nil && out.Told != nil {
		o.Told = summary.Merge(toldOf(o.Told, func(id thread.ID) bool { return !inside(id) }), *out.Told)
	}
	return out, err
}

func isAmong(ids []thread.ID) func(thread.ID) bool {
	set := make(map[thread.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return func(id thread.ID) bool { return set[id] }
}

// toldOf is what was told of some messages, and what names no message.
func toldOf(told summary.Summary, of func(thread.ID) bool) summary.Summary {
	told.Span = told.Span.Without(func(id thread.ID) bool { return !of(id) })
	return *without(&told, func(_ string, sources []thread.ID) bool { return len(sources) > 0 && !slices.ContainsFunc(sources, of) })
}

// Untold is the input to ask a model with: the messages of which nothing was told yet, with what was
// told of the others in the previous summary.
func (in *Input) Untold() Input {
	fresh, known := *in, in.Told
	if fresh.Told = (summary.Summary{}); known.Span.Len() == 0 {
		return fresh
	}
	told := isAmong(known.Span.MessageIDs)
	fresh.Messages = slices.DeleteFunc(slices.Clone(in.Messages), func(m thread.Message) bool { return told(m.ID) })
	if in.Previous != nil {
		known = summary.Merge(*in.Previous, known)
	}
	fresh.Previous = &known
	return fresh
}

// with is what was told of the span once a model proposes something more. Where that is about none of the
// messages that it was sent, it has not told of them: it is sent them again.
func (in *Input) with(proposed summary.Summary) summary.Summary {
	proposed.Span = spanOf(&Input{Messages: in.Untold().Messages})
	if of := toldOf(proposed, isAmong(proposed.Span.MessageIDs)); len(of.Sections()) == 0 {
		proposed.Span = thread.Span{}
	}
	all := summary.Merge(in.Told, proposed)
	// The oldest items go first, facts before others.
	over := len(all.Render()) - maxTold
	return *without(&all, func(text string, _ []thread.ID) bool {
		over -= len(text)
		return over+len(text) > 0
	})
}

// maxTold bounds the text that is kept of what was told, in bytes.
const maxTold = 40_000
