package policy

import "fmt"

// AfterLength is for a loop whose model stopped for length (E2): s has the
// answer in its thread already, without the calls that were cut off (see
// DiscardTruncatedCalls). Nil says that a compaction is due, and the loop goes on
// after it; an error that wraps ErrMaxTokens says that the loop ends. A policy
// that has an AfterLength method, as Loop does, decides itself.
func AfterLength(p Policy, s *State) error {
	if own, ok := p.(interface{ AfterLength(*State) error }); ok {
		return own.AfterLength(s)
	}
	if due, _ := p.Due(s); !due {
		return fmt.Errorf("policy %s: the request takes %d tokens and is not due, so compacting would not help: %w", p.Name(), s.Prompt, ErrMaxTokens)
	}
	return nil
}
