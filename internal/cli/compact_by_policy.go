package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// compact makes the request fit: by a ladder that fills the budget, or once by a
// policy that keeps to its own rules and formats. Such a policy does not aim at
// the budget, so what it leaves may still be too much.
func (r *resolved) compact(ctx context.Context, q palimpsest.Request) (*palimpsest.Result, error) {
	res, err := r.shorter(ctx, q)
	if err == nil && res.After > q.Budget {
		return nil, fmt.Errorf("policy %s keeps to its own rules and leaves %s tokens, over the budget of %s: raise it, or use --policy auto: %w",
			r.own.Name(), number(res.After), number(q.Budget), palimpsest.ErrOverBudget)
	}
	return res, err
}

// shorter is compact, but that what a policy of its own rules leaves may be over the
// budget.
func (r *resolved) shorter(ctx context.Context, q palimpsest.Request) (*palimpsest.Result, error) {
	if r.own == nil {
		res, err := r.compactor.Compact(ctx, q)
		if err == nil && r.summaries != nil {
			r.summaries.report(res.Summaries)
		}
		return res, err
	}
	whole, err := r.compactor.Render(nil, q)
	if err != nil || whole.After <= q.Budget {
		return whole, err
	}
	th := r.compactor.Session(q.Thread.ID())
	if _, err := th.Append(ctx, uncopied.Messages(q.Thread)...); err != nil {
		return nil, err
	}
	p, err := th.Plan(ctx, palimpsest.Step{Base: q.Base, Profile: q.Profile, Budget: q.Budget, Window: r.model.Window, Output: r.model.MaxOutput})
	if errors.Is(err, policy.ErrNothing) {
		return nil, fmt.Errorf("policy %s: %w; %w", r.own.Name(), err, palimpsest.ErrOverBudget)
	}
	if err != nil {
		return nil, err
	}
	res, err := r.compactor.Render(p, q)
	if err != nil {
		return nil, err
	}
	res.Plan.CompactedTokens = res.After
	return res, nil
}

// heard is a policy whose summaries are told: of a dry run only the plan comes
// back.
type heard struct {
	policy.Policy
	told *summaries
}

// Unwrap returns the policy itself (see policy.As).
func (h heard) Unwrap() policy.Policy { return h.Policy }

// Plan implements policy.Policy.
func (h heard) Plan(ctx context.Context, s *policy.Situation) (*policy.Fitted, error) {
	f, err := h.Policy.Plan(ctx, s)
	if err == nil {
		h.told.report(f.Summaries)
	}
	return f, err
}
