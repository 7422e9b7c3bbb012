package cli

import (
	"cmp"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// planTooLarge says that a plan which was made before does not fit the budget that
// is asked for now.
type planTooLarge struct {
	plan string
	*palimpsest.BudgetError
}

func (e *planTooLarge) Unwrap() error { return e.BudgetError }

// tooLarge names the parts that the prompt under a plan is made of, the largest
// first. They add up to the whole.
func (r *report) tooLarge(plan string) error {
	e := &palimpsest.BudgetError{Budget: r.Budget, Need: r.After}
	add := func(name string, tokens int) {
		if tokens > 0 {
			e.Parts = append(e.Parts, policy.Part{Name: name, Tokens: tokens})
		}
	}
	add("system prompt", r.System)
	add("tool definitions", r.Tools)
	add("framing of the request", r.Framing.After)
	for _, s := range r.Roles {
		add(cmp.Or(partNames[s.Name], "messages of the "+s.Name), s.After)
	}
	slices.SortStableFunc(e.Parts, func(a, b policy.Part) int { return cmp.Compare(b.Tokens, a.Tokens) })
	return &planTooLarge{plan, e}
}

// partNames say what the groups of a report are.
var partNames = map[string]string{
	"assistant": "messages of the assistant",
	"user":      "messages of the user",
	"tool":      "results of tools",
	"harness":   "messages of the harness",
	"summaries": "summaries in place of messages",
	"pointers":  "pointers to results that were externalized",
}
