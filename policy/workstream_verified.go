package policy

import (
	"context"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// merge puts the answer in the place of the notes, as far as it stands on the
// messages. A constraint is the user's when the user said it in these words, and
// pinned then; whatever the model pinned does not count.
func (w Workstream) merge(n workstreamNotes, a *workstreamAnswer, fresh []thread.Message) (workstreamNotes, error) {
	g := w.grounds(n, fresh)
	d := a.Delta.Unpinned()
	d.ActiveConstraints.Set = slices.DeleteFunc(d.ActiveConstraints.Set, func(it state.Item) bool { return !saidByUser(fresh, it.Text) })
	for i := range d.ActiveConstraints.Set {
		d.ActiveConstraints.Set[i].Pinned = true
	}
	for _, c := range []*state.Change{&d.KeyDecisions, &d.Tasks, &d.OpenQuestions, &d.Risks, &d.Artifacts, &d.AgentContributions} {
		c.Set = slices.DeleteFunc(c.Set, func(it state.Item) bool { return !g.Said(it.Text) })
	}
	sections := workstreamSections{
		KeyFacts:         standing(g, a.Summary.KeyFacts, true),
		ConversationFlow: standing(g, a.Summary.ConversationFlow, true),
		OpenThreads:      standing(g, a.Summary.OpenThreads, false),
	}
	if sections.text() == "" {
		return workstreamNotes{}, &summarize.RejectedError{Reason: summarize.Ungrounded}
	}
	return workstreamNotes{text: sections.text(), summary: sections.structured(), state: n.state.ApplyWithin(d, w.Limits)}, nil
}

// shownBy marks an entry that stands on a tool's result alone.
const shownBy = "Shown by a tool: "

// standing keeps the entries that stand on what was said, and marks those that
// stand on results of tools alone, where such may stay.
func standing(g *summarize.Grounds, entries []string, data bool) []string {
	var out []string
	for _, e := range entries {
		e = strings.TrimPrefix(e, shownBy)
		switch {
		case g.Said(e):
			out = append(out, e)
		case data && g.Shown(e):
			out = append(out, shownBy+e)
		}
	}
	return out
}

// grounds are the messages that the model reads, and the notes so far.
func (w Workstream) grounds(n workstreamNotes, fresh []thread.Message) *summarize.Grounds {
	var said, data strings.Builder
	for line := range strings.Lines(n.text) {
		if strings.Contains(line, shownBy) {
			data.WriteString(line)
		} else {
			said.WriteString(line)
		}
	}
	return summarize.NewGrounds(w.extracted(fresh), said.String(), data.String())
}

// withUser adds the user's task and rules, word for word, which no model is left
// to keep: to the facts where they do not stand there, and to the state.
func (w Workstream) withUser(ctx context.Context, s *Situation, prev, next workstreamNotes, fresh []thread.Message) (workstreamNotes, error) {
	in := summarize.Input{Messages: w.extracted(fresh), Previous: &summary.Summary{CurrentTask: prev.summary.CurrentTask, Constraints: prev.summary.Constraints}}
	sum, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	next.summary.CurrentTask, next.summary.Constraints = sum.CurrentTask, sum.Constraints
	var delta state.Delta
	var items []summary.Item
	if sum.CurrentTask != "" {
		items = append(items, summary.Item{Text: sum.CurrentTask})
	}
	for _, it := range sum.Constraints {
		items = append(items, it)
		delta.ActiveConstraints.Set = append(delta.ActiveConstraints.Set, state.Item{Text: it.Text, By: "user", Pinned: true})
	}
	next.state = next.state.ApplyWithin(delta, w.Limits)
	if entries := unsaid(next.text, items); len(entries) > 0 {
		next.text = joined(strings.ToUpper(userHeading)+":\n"+strings.Join(entries, "\n"), next.text)
	}
	return next, nil
}

// leastQuote is how long a text must be to count as a quotation, in bytes.
const leastQuote = 12

func saidByUser(messages []thread.Message, text string) bool {
	fold := func(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
	text = strings.TrimRight(fold(text), ".!")
	for i := range messages {
		if m := &messages[i]; len(text) >= leastQuote && m.StartsTurn() && strings.Contains(fold(m.Text()), text) {
			return true
		}
	}
	return false
}
