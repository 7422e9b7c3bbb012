package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
)

// Step is a summarizer with the name that reports use.
type Step struct {
	Name       string
	Summarizer Summarizer
}

// Fallback asks one summarizer after the other until one returns a summary that fits: Steps,
// then Extractive, then a note that says what was left out. So no agent stops because a
// model failed. The zero value asks only Extractive. Safe for concurrent use, not to be copied
// after first use.
type Fallback struct {
	Steps []Step
	// Extractive is asked last, and its counter checks the summaries of the others. Nil
	// means a new one.
	Extractive *Extractive
	// Timeout bounds each step; 0 means only the context does.
	Timeout time.Duration

	own Extractive
}

var _ Summarizer = (*Fallback)(nil)

// Summarize implements Summarizer. It fails with the error of ctx, whose end ends all work, and with
// ErrBudget if the budget cannot even hold a note. Of the time up to a deadline each of the steps has
// nine tenths of what is left, so that one that takes all of it leaves Extractive its own.
func (f *Fallback) Summarize(ctx context.Context, in Input) (Result, error) {
	code := cmp.Or(f.Extractive, &f.own)
	var report Report
	steps := append(slices.Clone(f.Steps), Step{"extractive", code})
	for i, step := range steps {
		if ctx.Err() != nil {
			return Result{}, report.failed(ctx.Err())
		}
		bounded, cancel := ctx, func() {}
		if end, ok := ctx.Deadline(); ok && i < len(f.Steps) {
			bounded, cancel = context.WithTimeout(ctx, time.Until(end)*9/10)
		}
		out, err := f.try(bounded, step.Summarizer, in, code)
		if cancel(); err == nil && ctx.Err() == nil {
			out.Report = report.With(out.Report)
			out.Report.By = step.Name
			return out, nil
		}
		if before, ok := errors.AsType[*FailedError](err); ok {
			report, err = report.With(before.Report), before.Err
		}
		report.Failures = append(report.Failures, Failure{step.Name, cmp.Or(err, ctx.Err())})
	}
	if ctx.Err() != nil {
		return Result{}, report.failed(ctx.Err())
	}
	out, err := note(in, code)
	if err != nil {
		return Result{}, report.failed(err)
	}
	report.By = "truncation_note"
	return Result{Summary: out, Report: report}, nil
}

// try runs one step; a panic or a summary over the budget is an error.
func (f *Fallback) try(ctx context.Context, s Summarizer, in Input, code *Extractive) (out Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &RejectedError{Reason: Panicked, Detail: fmt.Sprintf("%T", r)}
		}
	}()
	if f.Timeout > 0 {
		bounded, cancel := context.WithTimeout(ctx, f.Timeout)
		defer cancel()
		ctx = bounded
	}
	if out, err = s.Summarize(ctx, in); err != nil {
		return out, err
	}
	if n := code.count(out.Render()); in.Budget > 0 && n > in.Budget {
		return out, &RejectedError{Reason: OverBudget, Detail: fmt.Sprintf("%d tokens of %d", n, in.Budget)}
	}
	return out, nil
}

// note is a summary that says that there is none.
func note(in Input, code *Extractive) (summary.Summary, error) {
	out := summary.Summary{Span: spanOf(&in)}
	out.Facts = []summary.Item{{Text: fmt.Sprintf("[note by the compaction: %d messages, %s, were left out here without a summary]",
		len(out.Span.MessageIDs), clip.Turns(out.Span.FirstTurn, out.Span.LastTurn))}}
	if need := code.count(out.Render()); in.Budget > 0 && need > in.Budget {
		return summary.Summary{}, &BudgetError{Need: need, Budget: in.Budget}
	}
	return out, nil
}
