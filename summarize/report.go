package summarize

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
)

// Report is what a decorator tells about one call. Fields that it knows nothing
// of are zero.
type Report struct {
	// By is whose summary it is, of a Fallback: the step's name, "extractive" or
	// "truncation_note".
	By string
	// Failures are the steps of a Fallback that came to nothing, in order.
	Failures []Failure
	// Cache is how a Cached answered.
	Cache event.Cache
	// Proposed and Kept count the items that a Verified was offered beyond what
	// code finds itself, and those that it took.
	Proposed, Kept int
	// Dropped counts the items that a Verified did not take, by cause: "source",
	// "placeholder", "claim", "identifier", "quote", "number", "words", "negation",
	// "limit".
	Dropped map[string]int
}

// Failure is a step of a Fallback that came to nothing.
type Failure struct {
	Step string
	Err  error
}

// Reporter gets reports, on the goroutine of the call. It must be safe for
// concurrent use and must not block.
type Reporter func(context.Context, Report)

func (r Reporter) tell(ctx context.Context, report Report) {
	if r != nil {
		r(ctx, report)
	}
	if also, ok := ctx.Value(reporterKey{}).(Reporter); ok {
		also(ctx, report)
	}
}

type reporterKey struct{}

// ReportTo returns a context in which every report is told to r too, beside the
// reporters of the decorators: for whoever asks a summarizer that somebody else
// has put together.
func ReportTo(ctx context.Context, r Reporter) context.Context {
	return context.WithValue(ctx, reporterKey{}, r)
}

// Err joins the failures, each with the name of its step; nil when there are
// none. errors.Is and errors.As see all of them.
func (r Report) Err() error {
	errs := make([]error, len(r.Failures))
	for i, f := range r.Failures {
		errs[i] = fmt.Errorf("%s: %w", f.Step, f.Err)
	}
	return errors.Join(errs...)
}

// Event is the report as an event of type Summarized: names, classes and counts,
// no text of the conversation.
func (r Report) Event() event.Event {
	e := event.Event{Type: event.Summarized, Cache: r.Cache, Details: map[string]any{}}
	if r.By != "" {
		e.Details["summarizer"] = r.By
	}
	if len(r.Failures) > 0 {
		e.Err = event.ErrorClass(r.Failures[0].Err)
		e.Details["fallback"] = r.By
		var failed, classes []string
		for _, f := range r.Failures {
			failed = append(failed, f.Step)
			classes = append(classes, event.ErrorClass(f.Err))
		}
		e.Details["failed"], e.Details["classes"] = failed, classes
	}
	if r.Proposed > 0 {
		e.Details["proposed"], e.Details["kept"] = r.Proposed, r.Kept
	}
	for cause, n := range r.Dropped {
		e.Details["dropped_"+cause] = n
	}
	return e
}
