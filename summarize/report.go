package summarize

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// Report says how a summary was made. That of a summary by Extractive is zero.
type Report struct {
	// By names who made it: a model, a step of a Fallback, "extractive" or
	// "truncation_note".
	By string
	// Failures are the summarizers that were asked before and failed, in order.
	Failures []Failure
	// Cache is Hit if all answers of models were cached, Miss if a model was asked.
	Cache event.Cache
	// Proposed counts the sentences of a model's text, or the items of its answer in JSON
	// that code does not find itself. Kept counts those that passed the checks.
	Proposed, Kept int
	// Dropped counts those that failed, by cause: "identifier", "number", "quotation",
	// "user", "tool", "words", "source", "placeholder", "limit", and "cut" for the
	// sentence in which an answer reached its limit.
	Dropped map[string]int
	// Left are the first 100 of those, shortened. They are text of the conversation, so
	// no event contains them.
	Left []Left
}

// Left is a sentence of a model that was left out; Cause is a key of Report.Dropped.
type Left struct {
	Text  string `json:"text"`
	Cause string `json:"cause"`
}

const (
	// maxLeft bounds how many of the sentences left out a report lists, maxLeftText
	// what it shows of one, in bytes.
	maxLeft, maxLeftText = 100, 400
)

// take counts a sentence and reports whether it passes: it does if cause is empty.
func (r *Report) take(text, cause string) bool {
	r.Proposed++
	if cause == "" {
		r.Kept++
		return true
	}
	if r.Dropped == nil {
		r.Dropped = map[string]int{}
	}
	r.Dropped[cause]++
	if len(r.Left) < maxLeft {
		r.Left = append(r.Left, Left{clip.Brief(text, maxLeftText), cause})
	}
	return false
}

// Failure is a summarizer that was asked and failed.
type Failure struct {
	Step string
	Err  error
}

// Failures lists the failures in an error of a step that asked a model or a summarizer.
func Failures(step string, err error) []Failure {
	var all []Failure
	if failed, ok := errors.AsType[*FailedError](err); ok {
		all, err = slices.Clone(failed.Report.Failures), failed.Err
	}
	for _, a := range llm.AttemptsOf(step, err) {
		all = append(all, Failure{a.Model, a.Err})
	}
	return all
}

// Replied returns the report of a model's answer.
func Replied(model string, r *llm.Reply) Report {
	report := Report{By: model, Cache: event.Miss}
	if r.Cached {
		report.Cache = event.Hit
	}
	for _, a := range r.Attempts {
		if report.By = a.Model; a.Err != nil {
			report.Failures = append(report.Failures, Failure{a.Model, a.Err})
		}
	}
	return report
}

// With returns the report of a summary made in two steps; other is that of the second.
func (r Report) With(other Report) Report {
	r.By = cmp.Or(other.By, r.By)
	r.Failures = append(r.Failures[:len(r.Failures):len(r.Failures)], other.Failures...)
	if r.Cache != event.Miss {
		r.Cache = cmp.Or(other.Cache, r.Cache)
	}
	r.Proposed += other.Proposed
	r.Kept += other.Kept
	r.Left = append(r.Left[:len(r.Left):len(r.Left)], other.Left[:min(len(other.Left), maxLeft-min(len(r.Left), maxLeft))]...)
	if len(other.Dropped) > 0 {
		dropped := map[string]int{}
		maps.Copy(dropped, r.Dropped)
		for cause, n := range other.Dropped {
			dropped[cause] += n
		}
		r.Dropped = dropped
	}
	return r
}

// FailedError says that there is no summary. Report tells what happened before Err.
type FailedError struct {
	Report Report
	Err    error
}

// Error is that of Err.
func (e *FailedError) Error() string { return e.Err.Error() }

// Class is that of Err, for events.
func (e *FailedError) Class() string { return event.ErrorClass(e.Err) }

// Unwrap returns Err.
func (e *FailedError) Unwrap() error { return e.Err }

// failed wraps an error if there is something to report.
func (r Report) failed(err error) error {
	if len(r.Failures) == 0 && r.Proposed == 0 {
		return err
	}
	return &FailedError{r, err}
}

// Err joins the failures, each with the name of its step; nil if there are none.
func (r Report) Err() error {
	errs := make([]error, len(r.Failures))
	for i, f := range r.Failures {
		errs[i] = fmt.Errorf("%s: %w", f.Step, f.Err)
	}
	return errors.Join(errs...)
}

// Event returns the report as an event of type Asked: names, classes and counts, but no text of
// the conversation.
func (r Report) Event() event.Event {
	e := event.Event{Type: event.Asked, Details: map[string]any{}}
	if r.Cache != "" {
		// Not in Event.Cache, which is counted once per compaction.
		e.Details["cache"] = string(r.Cache)
	}
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

// Reason is why an answer was rejected. Each is an error, for errors.Is(err, summarize.CutOff).
type Reason string

// The reasons to reject an answer. The first six are found by reading it, the last two by
// Fallback, the others by Verified.
const (
	Empty         Reason = "empty"           // nothing was said
	Refused       Reason = "refused"         // the model or a filter will not answer
	CutOff        Reason = "cut off"         // the limit on the output was reached
	ToolCalled    Reason = "tool call"       // a call of a tool instead of an answer
	ReasoningOnly Reason = "reasoning only"  // thinking took all of the output
	Unreadable    Reason = "unreadable"      // no JSON object, or one of another shape
	placeholders  Reason = "placeholder"     // the form was filled in with "none" and the like
	Inflated      Reason = "inflated"        // it is larger than what it replaces
	Ungrounded    Reason = "ungrounded"      // the messages support none of it
	Panicked      Reason = "panic"           // the summarizer panicked
	OverBudget    Reason = "over the budget" // the summarizer broke its contract
)

// Error returns the reason in words.
func (r Reason) Error() string { return string(r) }

// RejectedError says why an answer was rejected. errors.Is compares it with a Reason.
type RejectedError struct {
	Reason Reason
	// Detail says more, never in words of the conversation; it may be empty.
	Detail string
}

// Error names the reason.
func (e *RejectedError) Error() string {
	return strings.TrimSuffix("summary rejected: "+string(e.Reason)+": "+e.Detail, ": ")
}

// Is reports whether target is the reason.
func (e *RejectedError) Is(target error) bool { return target == error(e.Reason) }

// Class names the reason for events.
func (e *RejectedError) Class() string {
	return "summary_" + strings.ReplaceAll(string(e.Reason), " ", "_")
}
