package truth

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// entries judges all entries of a summary, each kind by its proof.
func (c *checker) entries(s summary.Summary) {
	span, all, w := c.span, c.all, s.Work
	judge(c, "task", all, some(s.CurrentTask), func(x *index, task string, o origin) string { return x.said(task, userWords, o.turn, -1, nil) })
	judge(c, "request", span, s.Requests, userSaid)
	judge(c, "constraint", span, s.Constraints, userSaid)
	judge(c, "stated", span, s.Stated, userSaid)
	judge(c, "not shown", span, some(s.Unlisted), manySentences)
	judge(c, "turn", all, s.Elsewhere, hasUserTurn)
	judge(c, "plan", all, s.CurrentPlan, planned)
	judge(c, "conclusion", span, s.Conclusions, func(x *index, it summary.Item, o origin) string {
		if strings.HasPrefix(it.Text, "the agent's earlier summary:\n") || strings.HasPrefix(it.Text, "an earlier summary:\n") {
			return quoted(x, it, o)
		}
		return x.modelSaid(o, it.Text)
	})
	judge(c, "decision", span, s.Decisions, func(x *index, d summary.Decision, o origin) string { return x.modelSaid(o, d.Decision, d.Rationale) })
	judge(c, "open item", span, s.OpenItems, func(x *index, i summary.OpenItem, o origin) string { return x.modelSaid(o, i.Description, i.Context) })
	for kind, list := range map[string][]summary.Item{"fact": s.Facts, "identifiers": s.Identifiers, "report": s.Reports} {
		judge(c, kind, span, list, quoted)
	}
	judge(c, "attempt", span, s.FailedAttempts, attempted)
	judge(c, "file", span, s.Files, touched)
	judge(c, "more files", span, some([2]int{s.MoreFiles, s.MoreChanged}), func(x *index, n [2]int, _ origin) string {
		changed := map[string]bool{}
		for _, t := range x.touches {
			if t.what != "read" {
				changed[t.path] = true
			}
		}
		if n[1] > min(n[0], len(changed)) {
			return fmt.Sprintf("%d files were changed", len(changed))
		}
		return ""
	})
	judge(c, "call", span, s.ToolOutcomes, called)

	judge(c, "directory", all, seenOf(w.Directory), wasIn)
	judge(c, "branch", all, seenOf(w.Branch), onBranchLast)
	judge(c, "pull request", all, seenOf(w.PullRequest), pullRequested)
	judge(c, "commit", all, w.Commits, committed)
	judge(c, "edited", all, w.Edited, editedSince)
	judge(c, "unknown", all, w.Unknown, func(x *index, u state.Unknown, o origin) string { return x.mustRun(u.By, o.turn, -1) })
	judge(c, "check", all, w.Checks, checked)
	judge(c, "no edit since", all, w.Checks, func(x *index, k state.Check, _ origin) string { return x.calmSince(k, w.Checks) })
	judge(c, "not allowed", all, w.Refused, refused)
	judge(c, "running", all, w.Running, runs)
	judge(c, "next", all, seenOf(w.Next), func(x *index, s state.Seen, o origin) string { return x.modelSaid(o, s.Text) })
	judge(c, "operation", all, w.Operations, operated)
	judge(c, "not listed", all, some(w.Omitted), func(x *index, n state.Omitted, _ origin) string {
		if most := max(n.Commits, n.Edited, n.Checks, n.Refused, n.Running, n.Operations); most > len(x.calls) {
			return fmt.Sprintf("the log has %d calls", len(x.calls))
		}
		return ""
	})
}

// some is a list of a value, if it is not the zero value.
func some[T comparable](v T) (list []T) {
	if v != *new(T) {
		list = append(list, v)
	}
	return list
}

func seenOf(s state.Seen) (list []state.Seen) {
	if s.Text != "" {
		list = append(list, s)
	}
	return list
}

// allSteps is what stands before the last step of a plan that is told as one.
var allSteps = regexp.MustCompile(`^all \d+ steps, the last: `)

// planned looks for a step in the agent's last list, or, where it has none, in its words.
func planned(x *index, step summary.Step, _ origin) string {
	text := allSteps.ReplaceAllString(step.Text, "")
	if text != step.Text && slices.ContainsFunc(x.todo, func(t todo) bool { return t.status != "completed" && t.status != "deleted" }) {
		return "not all steps are completed"
	}
	words := normal(text)
	for _, t := range x.todo {
		if sameLine(words, normal(t.text)) {
			if t.status == step.Status || t.status == "" {
				return ""
			}
			return "its status is " + t.status
		}
	}
	if x.listed {
		return "the agent's last list does not hold it"
	}
	return x.said(text, modelWords, 0, -1, nil)
}

// hasUserTurn looks for the user's message of a turn.
func hasUserTurn(x *index, turn int, _ origin) string {
	if !slices.ContainsFunc(x.log, func(m thread.Message) bool { return m.Turn == turn && m.StartsTurn() }) {
		return fmt.Sprintf("the user says nothing in turn %d", turn)
	}
	return ""
}
