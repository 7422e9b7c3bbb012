package policy

import "fmt"

// As returns the policy as a T: itself, or, where it wraps another and says so by
// a method Unwrap() Policy, the first inside that is one.
func As[T any](p Policy) (found T, ok bool) {
	for p != nil {
		if found, ok = p.(T); ok {
			return found, true
		}
		outer, wraps := p.(interface{ Unwrap() Policy })
		if !wraps {
			break
		}
		p = outer.Unwrap()
	}
	return found, false
}

// AfterLength is for a loop whose model stopped for length (E2): s has the
// answer in its thread already, without the calls that were cut off (see
// DiscardTruncatedCalls). Nil says that a compaction is due, and the loop goes on
// after it; an error that wraps ErrMaxTokens says that the loop ends. A policy
// that has an AfterLength method, as Loop does, decides itself.
func AfterLength(p Policy, s *Situation) error {
	if own, ok := As[interface{ AfterLength(*Situation) error }](p); ok {
		return own.AfterLength(s)
	}
	if due, _ := p.Due(s); !due {
		return fmt.Errorf("policy %s: the request takes %d tokens and is not due, so compacting would not help: %w", p.Name(), s.Prompt, ErrMaxTokens)
	}
	return nil
}
