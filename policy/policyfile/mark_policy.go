package policyfile

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// markPolicy is a policy with the hard mark of policy.Auto and another ladder.
type markPolicy struct {
	policy.Auto
	name  string
	rungs strategy.Ladder
}

// Name returns the name of the settings.
func (m markPolicy) Name() string { return m.name }

// Due reports whether the request has passed the hard mark. Prices, which Auto also
// considers, are for its own ladder.
func (m markPolicy) Due(s *policy.Situation) (bool, string) {
	limit := s.Limit()
	hard := int(float64(limit) * m.Hard)
	if limit <= 0 || s.PromptTokens <= hard {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens, the mark is %d of %d", s.PromptTokens, hard, limit)
}

// refusalShrink is the factor on the target for each refusal by the provider.
const refusalShrink = 0.7

// Plan brings the request down to the target, or to a budget that was asked for.
func (m markPolicy) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	if s.Fill {
		return policy.Fill(ctx, s, m.name, m.rungs)
	}
	limit := s.Limit()
	if limit <= 0 {
		limit = s.PromptTokens
	}
	share := m.Target
	for range s.Refusals {
		share *= refusalShrink
	}
	target := int(float64(limit) * share)
	if s.UncompactedTokens() <= target {
		return nil, fmt.Errorf("policy %s: the request takes %s tokens with nothing hidden, the target is %s: %w", m.name, clip.Number(s.UncompactedTokens()), clip.Number(target), policy.ErrNothing)
	}
	return policy.Fit(ctx, s, m.name, m.rungs, target, limit)
}
