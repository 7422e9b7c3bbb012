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

// outlook is what the plan that `palimpsest plan` makes would do: for the budget that all commands have by default.
type outlook struct {
	Policy string       `json:"policy"`
	Budget int          `json:"budget"`
	From   string       `json:"budget_from"`             // where it comes from
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

// outlook plans for a conversation. outOfDate says of each message why it is out of date.
func (c *conversation) outlook(ctx context.Context, outOfDate []string) (*outlook, error) {
	c.policy = policyfile.Bases()[0]
	if err := c.resolve(); err != nil {
		return nil, err
	}
	res, err := c.compact(ctx, &storeFlag{})
	out := &outlook{Policy: c.policy, Budget: c.budget, From: c.budgetReason}
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

// tooSmall reports whether the request cannot become smaller.
func (out *outlook) tooSmall() bool { return out.Need == 0 && len(out.Done) == 0 }

// print says it in a sentence, of a request with so many results that are out of date.
func (out *outlook) print(p *printer, stale int) {
	to := fmt.Sprintf("compaction to %s tokens%s ", number(out.Budget), inBrackets(out.From))
	switch {
	case out.tooSmall():
		p.text("it is too small to be compacted")
	case out.Need > 0:
		p.text("%swould be refused: what must stay takes %s", to, number(out.Need))
	default:
		would := joinWords(mapSlice(out.Done, outlookRow.String), "and")
		if stale > 0 {
			would += fmt.Sprintf("; of the results that are out of date %s of %s would go with that", number(out.Stale), number(stale))
		}
		p.text("%sby the policy %s would %s", to, out.Policy, would)
	}
}

// String is the row as a part of a sentence.
func (r outlookRow) String() string {
	return fmt.Sprintf("%s %s of %s (%s → %s tokens)", r.Action, plural(r.Messages, "message"), clip.Turns(r.First, r.Last), number(r.Before), number(r.After))
}
