package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// Custom is a policy around a ladder of your own. It compacts at the hard mark of Auto.
// Prices, which Auto also considers, are for its own ladder.
type Custom struct {
	// PolicyName is the name in plans and reports; empty is "custom".
	PolicyName string
	// Ladder frees the room. Without a rung nothing is freed.
	Ladder strategy.Ladder
	// Hard and Target are those of Auto, shares of the room for messages: where a
	// compaction is due, and what it leaves. Defaults 0.9 and 0.5.
	Hard, Target float64
}

// Name returns PolicyName.
func (m Custom) Name() string { return cmp.Or(m.PolicyName, "custom") }

// Due reports whether the request has passed the hard mark.
func (m Custom) Due(s *Situation) (bool, string) {
	return isPast(s, cmp.Or(m.Hard, defaultHard), "")
}

// DueSoon reports whether the request is near the hard mark: a little room is left for the
// results that arrive while the next plan is made.
func (m Custom) DueSoon(s *Situation) (bool, string) {
	return isPast(s, max(cmp.Or(m.Target, defaultTarget), customSoonShare*cmp.Or(m.Hard, defaultHard)), ", before it has to be")
}

// customSoonShare is the soft mark as a share of the hard one, about that of Auto.
const customSoonShare = 0.85

// WaitsForJobs is false: below the hard mark nobody waits.
func (Custom) WaitsForJobs() bool { return false }

// isPast reports whether the messages take more than a share of their room.
func isPast(s *Situation, share float64, suffix string) (bool, string) {
	limit := s.Limit()
	most := s.ShareOfMessages(limit, share)
	if limit <= 0 || s.PromptTokens <= most {
		return false, ""
	}
	return true, fmt.Sprintf("the request takes %d tokens and is over %d of %d%s", s.PromptTokens, most, limit, suffix)
}

// Plan brings the request down to the target, or to a budget that was asked for.
func (m Custom) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	if s.Fill {
		return fill(ctx, s, m.Name(), m.Ladder)
	}
	limit := s.Limit()
	if limit <= 0 {
		limit = s.PromptTokens
	}
	share := cmp.Or(m.Target, defaultTarget)
	for range s.Refusals {
		share *= refusalShrink
	}
	target := s.ShareOfMessages(limit, share)
	if s.PromptTokens <= target {
		return nil, fmt.Errorf("policy %s: the request takes %s tokens, the target is %s: %w", m.Name(), clip.Number(s.PromptTokens), clip.Number(target), ErrNothing)
	}
	return Fit(ctx, s, m.Name(), m.Ladder, limit, target)
}
