package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Normalize returns the plan with every message in at most one record, and describes what
// it changed. Where records overlap, the precedence Drop > Externalize > Summarize > Clear
// decides, then the earlier record. The other record's span loses the message, and a
// record without any message left is removed. What remains of a span is rendered once, at
// its first remaining message. Normalizing again changes nothing.
func (p Plan) Normalize() (Plan, []string) {
	actions := p.Actions()
	owner := make(map[thread.ID]Ref, len(actions))
	var warnings []string
	out := p
	out.Clearings = slices.Clone(p.Clearings)
	out.Summarizations = slices.Clone(p.Summarizations)
	out.Externalizations = slices.Clone(p.Externalizations)
	out.Drops = slices.Clone(p.Drops)
	for ref, s := range out.spans() {
		*s = s.Without(func(id thread.ID) bool {
			winner := actions[id]
			if winner != ref {
				warnings = append(warnings, fmt.Sprintf("message %s is in both %s and %s; %s takes precedence", id, ref, winner, winner))
				return true
			}
			_, twice := owner[id]
			owner[id] = ref
			return twice
		})
	}
	out.Clearings = slices.DeleteFunc(out.Clearings, func(r Clearing) bool { return r.Span.Len() == 0 })
	out.Summarizations = slices.DeleteFunc(out.Summarizations, func(r Summarization) bool { return r.Span.Len() == 0 })
	out.Externalizations = slices.DeleteFunc(out.Externalizations, func(r Externalization) bool { return r.Span.Len() == 0 })
	out.Drops = slices.DeleteFunc(out.Drops, func(r Removal) bool { return r.Span.Len() == 0 })
	return out, warnings
}

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("plan does not hold for the thread")

// InvalidError says which record of a plan breaks which rule.
type InvalidError struct {
	Record Ref
	ID     thread.ID // the message, where one can be named
	Reason string
	Err    error // the cause in package thread, or nil
}

// Error writes the record, the message and the reason.
func (e *InvalidError) Error() string {
	text := fmt.Sprintf("plan.Validate: %s", e.Record)
	if e.ID != "" {
		text += fmt.Sprintf(", message %s", e.ID)
	}
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text + ": " + e.Reason
}

// Is makes every InvalidError match ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the cause, so that thread.ErrUnknownID and its like match.
func (e *InvalidError) Unwrap() error { return e.Err }

// Validate checks that the plan can be rendered over t, or over any longer version of it:
// the plan was made for this thread, every span is in it, every message has one action, none
// that is pinned is hidden, what replaces a span can be sent, no call is parted from its
// results, and no call that still waits for its result is touched.
// A plan that fails is an error and never repaired: whoever made it did not see the thread
// as it is.
func (p *Plan) Validate(t *thread.Thread) error {
	return p.ValidatePairs(t, thread.Pair(t))
}

// ValidatePairs is Validate for callers who already have the pairing of t.
func (p *Plan) ValidatePairs(t *thread.Thread, pairs *thread.Pairing) error {
	if p.ThreadID != t.ID() {
		return fmt.Errorf("plan.Validate: it was made for thread %q, not for %q: %w", p.ThreadID, t.ID(), ErrInvalid)
	}
	if p.ThreadVersion > t.Version() {
		return fmt.Errorf("plan.Validate: plan was made for version %d, the thread has only %d messages: %w", p.ThreadVersion, t.Version(), ErrInvalid)
	}
	if p.Arrived < 0 || p.Arrived > p.ThreadVersion {
		return fmt.Errorf("plan.Validate: %d messages had arrived, of %d that there were: %w", p.Arrived, p.ThreadVersion, ErrInvalid)
	}
	if p.Edited < 0 || p.Edited > t.Version() {
		return fmt.Errorf("plan.Validate: it was edited at %d messages, the thread has %d: %w", p.Edited, t.Version(), ErrInvalid)
	}
	if err := p.checkSpans(t); err != nil {
		return err
	}
	return p.checkCalls(t, pairs)
}

func (p *Plan) checkSpans(t *thread.Thread) error {
	owner := make(map[thread.ID]Ref)
	for ref, s := range p.spans() {
		if err := s.Check(t); err != nil {
			return &InvalidError{Record: ref, Err: err}
		}
		for _, id := range s.MessageIDs {
			if other, twice := owner[id]; twice {
				return &InvalidError{Record: ref, ID: id, Reason: fmt.Sprintf("is in %s too; normalize the plan first", other)}
			}
			owner[id] = ref
			if i, _ := t.Index(id); i >= p.ThreadVersion {
				return &InvalidError{Record: ref, ID: id, Reason: fmt.Sprintf("stands at position %d, after the version %d that the plan was made for", i, p.ThreadVersion)}
			}
		}
	}
	for n := range p.Summarizations {
		for _, said := range p.Summarizations[n].Stand {
			if wrong := said.check(); wrong != "" {
				return &InvalidError{Record: Ref{Summarize, n}, Reason: wrong}
			}
		}
	}
	for _, id := range p.Pinned {
		if ref, hidden := owner[id]; hidden {
			return &InvalidError{Record: ref, ID: id, Reason: "is pinned"}
		}
	}
	return nil
}

// check says what is wrong with a replacement; empty for nothing. Without a role of its own
// it gets one when it is rendered. In any other role than these the text would not be sent.
func (r Replacement) check() string {
	switch r.Role {
	case "", thread.System, thread.User, thread.Assistant:
	default:
		return fmt.Sprintf("a replacement has the role %q; it can be system, user or assistant", r.Role)
	}
	if strings.TrimSpace(r.Text) == "" {
		return "a replacement has no text"
	}
	return ""
}

// checkCalls checks the two rules of tool pairs. While a call stays, its result may be
// replaced in place by a pointer, a summary or a placeholder, but not dropped. Where the
// call is removed, its results are removed too, except for one that came late: whoever made the
// plan may not have seen it, and it is shown as text. Of a unit of a hosted call all goes, or nothing.
func (p *Plan) checkCalls(t *thread.Thread, pairs *thread.Pairing) error {
	actions := p.Actions()
	messages := t.Messages()
	for i := range messages {
		m := &messages[i]
		ref := actions[m.ID]
		if pairs.Open(i) && ref.Action != Include {
			return &InvalidError{Record: ref, ID: m.ID, Reason: "its call still waits for a result; leave the message alone"}
		}
		if first, last := pairs.Unit(i); ref.Action.Removes() != actions[messages[first].ID].Action.Removes() {
			return &InvalidError{Record: ref, ID: m.ID, Reason: fmt.Sprintf("it belongs to a call that ran at the provider, from %s to %s; cover all or none of it", messages[first].ID, messages[last].ID)}
		}
		if m.Role != thread.Assistant {
			continue
		}
		for _, r := range pairs.Results(i) {
			result := actions[messages[r].ID]
			switch {
			case ref.Action.Removes() && !result.Action.Removes() && len(pairs.Late(r)) == 0:
				return &InvalidError{Record: ref, ID: m.ID, Reason: fmt.Sprintf("the call goes but its result %s stays; cover both", messages[r].ID)}
			case !ref.Action.Removes() && result.Action == Drop:
				return &InvalidError{Record: result, ID: messages[r].ID, Reason: fmt.Sprintf("the result goes but its call in %s stays; clear the result, or cover both", m.ID)}
			}
		}
	}
	return nil
}
