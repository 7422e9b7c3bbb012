package plan

import (
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/thread"
)

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

// Validate checks that the plan can be rendered over t, or over any longer
// version of it: the thread is the plan's own, every span is one of the thread,
// every message has one action, no call is parted from its results, and no call
// that still waits for its result is touched. A plan that fails is an error and
// never repaired: whoever made it did not see the thread as it is.
func (p *Plan) Validate(t *thread.Thread) error {
	return p.ValidatePairs(t, thread.Pair(t))
}

// ValidatePairs is Validate for callers who have the pairing of t already.
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
	if err := p.checkSpans(t); err != nil {
		return err
	}
	return p.checkCalls(t, pairs)
}

func (p *Plan) checkSpans(t *thread.Thread) error {
	owner := make(map[thread.ID]Ref)
	var failed error
	p.each(func(ref Ref, s *thread.Span, _ *Origin) {
		if failed != nil {
			return
		}
		if err := s.Check(t); err != nil {
			failed = &InvalidError{Record: ref, Err: err}
			return
		}
		for _, id := range s.MessageIDs {
			if other, twice := owner[id]; twice {
				failed = &InvalidError{Record: ref, ID: id, Reason: fmt.Sprintf("is in %s too; normalize the plan first", other)}
				return
			}
			owner[id] = ref
			if i, _ := t.Index(id); i >= p.ThreadVersion {
				failed = &InvalidError{Record: ref, ID: id, Reason: fmt.Sprintf("stands at position %d, after the version %d that the plan was made for", i, p.ThreadVersion)}
				return
			}
		}
	})
	return failed
}

// checkCalls holds the two rules of tool pairs. A result may be replaced in its
// place by a pointer, a summary or a placeholder while its call stays; it may
// not be dropped then. Where the call goes, its results go.
func (p *Plan) checkCalls(t *thread.Thread, pairs *thread.Pairing) error {
	actions := p.Actions()
	messages := uncopied.Messages(t)
	for i := range messages {
		m := &messages[i]
		if m.Role != thread.Assistant {
			continue
		}
		ref := actions[m.ID]
		if pairs.Open(i) && ref.Action != Include {
			return &InvalidError{Record: ref, ID: m.ID, Reason: "its call still waits for a result; leave the message alone"}
		}
		for _, r := range pairs.Results(i) {
			result := actions[messages[r].ID]
			switch {
			case ref.Action.Removes() && !result.Action.Removes():
				return &InvalidError{Record: ref, ID: m.ID, Reason: fmt.Sprintf("the call goes but its result %s stays; cover both", messages[r].ID)}
			case !ref.Action.Removes() && result.Action == Drop:
				return &InvalidError{Record: result, ID: messages[r].ID, Reason: fmt.Sprintf("the result goes but its call in %s stays; clear the result, or cover both", m.ID)}
			}
		}
	}
	return nil
}
