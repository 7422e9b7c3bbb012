package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func (s *Server) explain(ctx context.Context, in explainArgs, tokens int) (string, error) {
	one, c, err := s.openSession(ctx, in.Session)
	if err != nil {
		return "", err
	}
	one.Messages = c.Log.Len()
	head := one.row("") + fmt.Sprintf(" · %s.", clip.Count(c.Log.Turns(), "turn")) + warned(c.Warnings)
	var rows []string
	for _, own := range c.OwnCompactions {
		row := fmt.Sprintf("turn %d · the agent compacted by itself", own.Turn)
		if own.Trigger != "" {
			row += " (" + clip.Line(own.Trigger, 40) + ")"
		}
		if own.Summary != "" {
			row += " · its summary is message " + shortID(own.Summary)
		}
		rows = append(rows, row+" · recall still finds what was before it")
	}
	if c.Plan == nil || c.Plan.Empty() {
		head += "\nNo plan is in force: Palimpsest removed nothing. The tool compact shows what it would remove."
	} else {
		head += fmt.Sprintf("\nPlan %d is in force, made by the policy %s on %s: %s", c.Version, clip.Line(c.Plan.Policy, 40), c.Plan.CreatedAt.UTC().Format(time.DateOnly+" 15:04"), planTotals(c.Plan, c.Plan.OriginalTokens, c.Plan.CompactedTokens))
		rows = append(rows, recordRows(c.Log, c.Plan)...)
	}
	return s.pageOfRows(head, rows, in.Cursor, tokens)
}

// warned are lines for warnings, as far as maxWarned.
func warned(warnings []string) (lines string) {
	for i, w := range warnings {
		if i == maxWarned {
			return lines + fmt.Sprintf("\nand %d more warnings: palimpsest inspect shows them", len(warnings)-i)
		}
		lines += "\nwarning: " + clip.Line(w, 300)
	}
	return lines
}

// maxWarned limits how many warnings of a session are told.
const maxWarned = 5

// shortID is the beginning of a message's id, long enough for read_artifact.
func shortID(id thread.ID) string { return clip.Line(string(id[:min(12, len(id))]), 12) }

// planTotals says what a plan does to the size of the request, and heads recordRows.
func planTotals(p *plan.Plan, before, after int) string {
	return fmt.Sprintf("%s of %s tokens remain, after %s, largest first: what is done · turns · with what · tokens before and after · why.", clip.Number(after), clip.Number(before), clip.Count(len(p.Refs()), "step"))
}

// recordRows has a row for each record of a plan, the one that frees most first. It quotes
// messages as data.
func recordRows(log *thread.Thread, p *plan.Plan) []string {
	refs := p.Refs()
	freed := func(ref plan.Ref) int { return p.Record(ref).Made().Freed() }
	slices.SortStableFunc(refs, func(a, b plan.Ref) int { return freed(b) - freed(a) })
	rows := make([]string, 0, len(refs))
	for _, ref := range refs {
		record := p.Record(ref)
		span, made := record.Covers(), record.Made()
		turns := clip.Turns(span.FirstTurn, span.LastTurn)
		what := clip.Count(span.Len(), "message") + ", the first is " + shortID(span.First())
		if i, ok := log.Index(span.First()); ok && span.Len() == 1 {
			what = "message " + shortID(span.First()) + " " + quotedName(briefMessage(log.At(i)))
		}
		switch r := record.(type) {
		case plan.Externalization:
			what += ", read_artifact " + r.ArtifactID
		case plan.Summarization:
			for _, kept := range r.Kept[:min(len(r.Kept), maxListedArtifacts)] {
				what += ", read_artifact " + kept.ArtifactID
			}
		}
		rows = append(rows, strings.Join([]string{ref.Action.String(), turns, what, clip.Number(made.TokensBefore) + " → " + clip.Number(made.TokensAfter), clip.Line(made.Reason, 200)}, " · "))
	}
	return rows
}

// maxListedArtifacts limits the artifacts of a summary in a row.
const maxListedArtifacts = 3

func briefMessage(m *thread.Message) string {
	if r, ok := m.Result(); ok {
		return r.Tool + ": " + clip.Line(strings.TrimSpace(r.Text()), 60)
	}
	return clip.Line(strings.TrimSpace(m.Text()), 60)
}

// maxBudget is the largest plausible budget, in tokens.
const maxBudget = 1 << 30

func (s *Server) compact(ctx context.Context, in keepArgs, tokens int) (string, error) {
	if in.Budget < 0 || in.Budget > maxBudget {
		return "", fmt.Errorf("budget: want a number of tokens above 0, such as 32000")
	}
	one, err := s.findSession(ctx, in.Session)
	if err != nil {
		return "", err
	}
	c, err := s.sessions.Compact(ctx, one.ID, in.Budget, in.Keep)
	if err != nil {
		return "", err
	}
	if c.Plan.Empty() {
		under := ""
		if c.After < c.Before {
			under = " under the plan in force"
		}
		return fmt.Sprintf("%s\nIt fits as it is%s: %s tokens, the budget is %s. There is nothing to remove.", one.row("")+warned(c.Warnings), under, clip.Number(c.After), clip.Number(c.Budget)), nil
	}
	head := one.row("") + warned(c.Warnings) + "\n"
	if c.StoredIn != "" {
		head += "The plan is in force and kept in " + c.StoredIn + "; the conversation itself is unchanged. "
	} else {
		head += "Nothing was changed. "
	}
	head += fmt.Sprintf("For a budget of %s, %s", clip.Number(c.Budget), planTotals(c.Plan, c.Before, c.After))
	if c.Next != "" {
		head += "\n" + c.Next
	}
	return s.pageOfRows(head, recordRows(c.Log, c.Plan), in.Cursor, tokens)
}
