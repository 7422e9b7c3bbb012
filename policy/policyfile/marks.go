package policyfile

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// marks is a policy with the trigger of policy.Auto and another ladder.
type marks struct {
	policy.Auto
	name  string
	rungs strategy.Ladder
}

// Name returns the name of the settings.
func (m marks) Name() string { return m.name }

// harderBy is what the target shrinks by each time that the provider refuses
// the request all the same.
const harderBy = 0.7

// Plan brings the request down to the target.
func (m marks) Plan(ctx context.Context, s *policy.State) (*policy.Fitted, error) {
	limit := s.Budget
	if limit <= 0 {
		limit = s.Window - s.Output
	}
	if limit <= 0 {
		limit = s.Prompt
	}
	share := m.Target
	for range s.Harder {
		share *= harderBy
	}
	target := int(float64(limit) * share)
	if s.Whole() <= target {
		return nil, fmt.Errorf("policy %s: the request takes %d tokens with nothing hidden, the target is %d: %w", m.name, s.Whole(), target, policy.ErrNothing)
	}
	return policy.Fit(ctx, s, m.name, m.rungs, target)
}
