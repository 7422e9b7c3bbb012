package event

import (
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
	for _, quoted := range quotedBy(err) {
		text = strings.ReplaceAll(text, quoted, "…")
	}
	return clip.Short(inQuotes().ReplaceAllString(text, `"…"`), maxCause)
}

var inQuotes = lazyregexp.New(`(?s)"(?:[^"\\]|\\.)*"?` + "|`[^`]*`?")

// quotedBy lists what the errors of a chain quote.
func quotedBy(err error) (all []string) {
	if q, ok := err.(interface{ Quoted() string }); ok && q.Quoted() != "" {
		all = append(all, q.Quoted())
	}
	switch wraps := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wraps.Unwrap(); inner != nil {
			all = append(all, quotedBy(inner)...)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wraps.Unwrap() {
			if inner != nil {
				all = append(all, quotedBy(inner)...)
			}
		}
	}
	return all
}
