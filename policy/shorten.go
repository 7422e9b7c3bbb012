package policy

import (
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// Shorten adds to a plan of the named policy, nil for none, what brings its request down to
// limit, in tokens. Its summaries stay as they are. Results that it leaves whole are
// externalized or cleared, the oldest first, and where that is not enough less is left of those
// before; those that the model has not seen come last, and keep what fits of them. The error
// wraps ErrOverBudget if the request is still too large.
func (s *Situation) Shorten(ctx context.Context, name string, p *plan.Plan, limit int) (*Fitted, error) {
	var failed error
	unseen := strategy.Unseen(s.Thread)
	for _, way := range []struct {
		whole []int
		tight bool // the shortened results of the plan are shortened anew
	}{{unseen, false}, {unseen, true}, {nil, false}, {nil, true}} {
		room := limit - s.Fixed
		for n := 0; n < maxFitAttempts && room > 0; n++ {
			given := s.given()
			given.Room = room
			v := strategy.NewView(given)
			v.Hold(p, way.tight, way.whole)
			rungs := strategy.Ladder{strategy.Externalize{}, strategy.Clear{Arguments: true}}
			if way.whole == nil {
				rungs = append(rungs, strategy.AfterSummaries(strategy.Externalize{Large: true}))
			}
			fits, err := rungs.Climb(ctx, v)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if !fits {
				failed = errors.Join(failed, err)
				break
			}
			next := s.Draft(name)
			if p != nil {
				next.Cache = p.Cache
			}
			for _, record := range v.Records() {
				next.Add(record)
			}
			f, err := s.Render(next)
			if err != nil {
				return nil, err
			}
			if f.Tokens <= limit {
				next.CompactedTokens = f.Tokens
				f.Proposals = v.Proposed()
				return f, nil
			}
			room -= f.Tokens - limit + n*n*slackStep
		}
	}
	return nil, budgetError(s, limit, failed)
}
