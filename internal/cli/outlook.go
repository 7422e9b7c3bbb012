package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
)

// outlook is what compaction to half of the size would do, or to the model's window where that is less: the
// plan that `palimpsest plan` makes for that budget.
type outlook struct {
	Policy string       `json:"policy"`
	Budget int          `json:"budget"`
	Before int          `json:"tokens_before,omitempty"` // of the whole request as it is sent
	After  int          `json:"tokens_after,omitempty"`
	Need   int          `json:"need,omitempty"` // a larger budget that can be met, if this one cannot
	Done   []outlookRow `json:"actions"`
	Stale  int          `json:"out_of_date"` // how many of the results that are out of date it takes away
}

// outlookRow adds up the records of one action.
type outlookRow struct {
	Action   plan.Action `json:"action"`
	Records  int         `json:"records"`
	Messages int         `json:"messages"`
	First    int         `json:"first_turn"`
	Last     int         `json:"last_turn"`
	Before   int         `json:"tokens_before"`
	After    int         `json:"tokens_after"`
}

// outlook plans for a budget. outOfDate says of each message why it is out of date.
func (c *conversation) outlook(ctx context.Context, budget int, outOfDate []string) (*outlook, error) {
	c.policy, c.budget = policyfile.Bases()[0], max(budget, 1)
	if err := c.resolve(); err != nil {
		return nil, err
	}
	c.budget = min(c.budget, windowBudget(c.models, c.in.Model)) // no model takes more at once
	out := &outlook{Policy: c.policy, Budget: c.budget}
	res, err := c.compact(ctx, &storeFlag{})
	if over, ok := errors.AsType[*policy.BudgetError](err); ok {
		out.Need = over.Need
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Before, out.After = res.Before, res.After
	byAction := rows[plan.Action, outlookRow]{}
	for _, r := range newReport(c, res).Records {
		row := byAction.at(r.Action, func() outlookRow { return outlookRow{Action: r.Action, First: r.First, Last: r.Last} })
		row.Records++
		row.Messages += r.Messages
		row.First, row.Last = min(row.First, r.First), max(row.Last, r.Last)
		row.Before += r.Before
		row.After += r.After
	}
	out.Done = largest(byAction.list(), len(byAction), func(r outlookRow) int { return r.Before - r.After })
	actions := res.Plan.Actions()
	for i, m := range c.in.Thread.All() {
		if outOfDate[i] != "" && actions[m.ID].Action != plan.Include {
			out.Stale++
		}
	}
	return out, nil
}

// tooSmall reports whether a request of that many tokens cannot become smaller.
func (out *outlook) tooSmall(tokens int) bool { return out.Need >= tokens }

// print says it in a sentence, of a request of that many tokens with so many results that are
// out of date.
func (out *outlook) print(p *printer, tokens, stale int) {
	to := "half of it"
	if out.Budget < tokens/2 {
		to = "what the model's window leaves"
	}
	half := fmt.Sprintf("compaction to %s, %s tokens, ", to, number(out.Budget))
	switch {
	case out.tooSmall(tokens):
		p.text("it is too small to be compacted")
	case out.Need > 0:
		p.text("%swould be refused: what must stay takes %s", half, number(out.Need))
	case len(out.Done) == 0:
		p.text("%swould change nothing: as it is sent it takes %s", half, number(out.After))
	default:
		would := joinWords(mapSlice(out.Done, outlookRow.String), "and")
		if stale > 0 {
			would += fmt.Sprintf("; of the results that are out of date %s of %s would go with that", number(out.Stale), number(stale))
		}
		p.text("%sby the policy %s, would %s", half, out.Policy, would)
	}
}

// String is the row as a part of a sentence.
func (r outlookRow) String() string {
	return fmt.Sprintf("%s %s of %s (%s → %s tokens)", r.Action, plural(r.Messages, "message"), clip.Turns(r.First, r.Last), number(r.Before), number(r.After))
}
