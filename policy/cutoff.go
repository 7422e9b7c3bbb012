package policy

import (
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// ErrMaxTokens says that a model's answer was cut off and that compacting would not help:
// the loop should end.
var ErrMaxTokens = errors.New("the answer reached the limit on the output")

// CheckCutOff is for a loop whose model stopped for length. The thread of s already has
// the answer, without the calls that were cut off. Nil says that a compaction is due, and
// the loop continues after it; an error that wraps ErrMaxTokens says that the loop should
// end.
func CheckCutOff(p Policy, s *Situation) error {
	if due, _ := p.Due(s); due {
		return nil
	}
	why := fmt.Sprintf("the request takes %s tokens and is not due", clip.Number(s.PromptTokens))
	if l, ok := As[Loop](p); ok {
		entries, err := s.visibleEntries()
		if err != nil {
			return fmt.Errorf("policy %s: %w", p.Name(), err)
		}
		why = fmt.Sprintf("the messages take %.0f %% of what is left for them", l.budget(s, entries).Utilization*100)
	}
	return fmt.Errorf("policy %s: %s, so compacting would not help: %w", p.Name(), why, ErrMaxTokens)
}
