package summarize

import "strings"

// Reason is why an answer, or an item of one, was not taken. Each is an error of
// its own, so that errors.Is(err, summarize.CutOff) asks for it.
type Reason string

// The reasons to reject a whole answer. The first ones are found where the
// answer is read, the rest by Verified.
const (
	Empty         Reason = "empty"           // nothing was said
	Refused       Reason = "refused"         // the model or a filter will not answer
	CutOff        Reason = "cut off"         // the limit on the output was reached
	ToolCalled    Reason = "tool call"       // a call of a tool instead of an answer
	ReasoningOnly Reason = "reasoning only"  // thinking took all of the output
	Unreadable    Reason = "unreadable"      // no JSON object, or one of another shape
	Placeholder   Reason = "placeholder"     // the form was filled in with "none" and the like
	Inflated      Reason = "inflated"        // it is larger than what it replaces
	Ungrounded    Reason = "ungrounded"      // no item stands on what was said
	Panicked      Reason = "panic"           // the summarizer panicked
	OverBudget    Reason = "over the budget" // the summarizer broke its contract
)

// Error returns the reason in words.
func (r Reason) Error() string { return string(r) }

// RejectedError says why an answer was rejected. errors.Is compares with the
// Reason.
type RejectedError struct {
	Reason Reason
	// Detail says more, in our words and counts, never the conversation's; it
	// may be empty.
	Detail string
}

// Error names the reason.
func (e *RejectedError) Error() string {
	if e.Detail == "" {
		return "summary rejected: " + string(e.Reason)
	}
	return "summary rejected: " + string(e.Reason) + ": " + e.Detail
}

// Is reports whether target is the reason.
func (e *RejectedError) Is(target error) bool { return target == error(e.Reason) }

// Class names the reason for events.
func (e *RejectedError) Class() string {
	return "summary_" + strings.ReplaceAll(string(e.Reason), " ", "_")
}
