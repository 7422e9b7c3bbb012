package event

import (
	"iter"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
)

// Failing returns the event with an error as its Cause, and the class of that as its Err.
func (e Event) Failing(err error) Event {
	e.Err, e.Cause = ErrorClass(err), err
	return e
}

// maxCause bounds the text of a cause, in bytes.
const maxCause = 300

// CauseText returns the text of an error for the log of whoever runs the process; empty for
// nil. It leaves out what may be of a conversation: text in quotes, as errors quote ids and
// what callers sent, and what an error in the chain returns from its method
// Quoted() string, as llm.APIError does with the words of a provider.
func CauseText(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for e := range chain(err) {
		if q, ok := e.(interface{ Quoted() string }); ok && q.Quoted() != "" {
			text = strings.ReplaceAll(text, q.Quoted(), "…")
		}
	}
	return clip.Short(inQuotes().ReplaceAllString(text, `"…"`), maxCause)
}

var inQuotes = lazyregexp.New(`(?s)"(?:[^"\\]|\\.)*"?` + "|`[^`]*`?")

// chain yields an error and all that it wraps, depth first.
func chain(err error) iter.Seq[error] {
	return func(yield func(error) bool) { walk(err, yield) }
}

func walk(err error, yield func(error) bool) bool {
	if err == nil || !yield(err) {
		return err == nil
	}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		return walk(wraps.Unwrap(), yield)
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(wraps.Unwrap(), func(inner error) bool { return !walk(inner, yield) })
	}
	return true
}
