package policyfile

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// markPolicy compacts at the hard mark of policy.Auto, by another ladder. Prices, which Auto
// also considers, are for its own ladder.
type markPolicy struct {
	name         string
	hard, target float64 // as policy.Auto has them
	rungs        strategy.Ladder
}

// Name returns the name of the settings.
func (m markPolicy) Name() string { return m.name }

// Due reports whether the request has passed the hard mark.
func (m markPolicy) Due(s *policy.Situation) (bool, string) {
	return isPast(s, m.hard, "the mark")
}

// DueSoon reports whether the request is near the hard mark: a little room is left for the
// results that arrive while the next plan is made.
func (m markPolicy) DueSoon(s *policy.Situation) (bool, string) {
	return isPast(s, max(m.target, soonShare*m.hard), "the soft mark")
}

// soonShare is the soft mark as a share of the hard one, about that of policy.Auto.
const soonShare = 0.85

// WaitsForJobs is false: below the hard mark nobody waits.
func (markPolicy) WaitsForJobs() bool { return false }

// isPast reports whether the messages take more than a share of their room.
func isPast(s *policy.Situation, share float64, mark string) (bool, string) {
	limit := s.Limit()
	most := s.ShareOfMessages(limit, share)
	if limit <= 0 || s.PromptTokens <= most {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens, %s is %d of %d", s.PromptTokens, mark, most, limit)
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
	share := m.target
	for range s.Refusals {
		share *= refusalShrink
	}
	target := s.ShareOfMessages(limit, share)
	if s.PromptTokens <= target {
		return nil, fmt.Errorf("policy %s: the request takes %s tokens, the target is %s: %w", m.name, clip.Number(s.PromptTokens), clip.Number(target), policy.ErrNothing)
	}
	return policy.Fit(ctx, s, m.name, m.rungs, target, limit)
}
