package policy

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/strategy"
)

// Auto is our own default. It compacts in batches, seldom and well below the
// limit, so that the prompt's prefix stays the same in between: when the request
// passes the hard mark it is brought down to the target, by rule first and by
// summaries after (strategy.Auto).
type Auto struct {
	// Hard is the share of what the model can read at which the thread is
	// compacted, Target the share that is left afterwards, as ratios. The
	// defaults, 0.9 and 0.5, are where the better agents have settled.
	Hard, Target float64
}

const (
	defaultHard   = 0.9
	defaultTarget = 0.5
	// harderBy is what the target shrinks by each time that the provider refuses
	// the request all the same: its own count is larger than ours then.
	harderBy = 0.7
)

// Name returns "auto".
func (Auto) Name() string { return "auto" }

// Due reports whether the request has passed the hard mark.
func (a Auto) Due(s *State) (bool, string) {
	limit := s.limit()
	hard := int(float64(limit) * or(a.Hard, defaultHard))
	if limit <= 0 || s.Prompt <= hard {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens, the mark is %d of %d", s.Prompt, hard, limit)
}

// Plan brings the request down to the target.
func (a Auto) Plan(ctx context.Context, s *State) (*Fitted, error) {
	limit := s.limit()
	if limit <= 0 {
		limit = s.Prompt
	}
	share := or(a.Target, defaultTarget)
	for range s.Harder {
		share *= harderBy
	}
	target := int(float64(limit) * share)
	if s.Whole() <= target {
		return nil, fmt.Errorf("policy auto: the request takes %d tokens with nothing hidden, the target is %d: %w", s.Whole(), target, ErrNothing)
	}
	return Fit(ctx, s, a.Name(), strategy.Auto(), target)
}

// limit is what the model can read: the budget, or what its window leaves
// beside its answer. It is 0 when neither is known.
func (s *State) limit() int {
	if s.Budget > 0 {
		return s.Budget
	}
	return max(0, s.Window-s.Output)
}

func or(x, fallback float64) float64 {
	if x == 0 {
		return fallback
	}
	return x
}
