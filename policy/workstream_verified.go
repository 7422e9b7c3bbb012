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

// merge puts the answer in the place of the notes, as far as it can be taken. A
// constraint is the user's when the user said it in these words, and pinned then;
// whatever the model pinned does not count.
//
// What the model reads leaves out most tools (D4), but a statement stands on all
// messages.
func (w Workstream) merge(model *asker, n workstreamNotes, a *workstreamAnswer, fresh []thread.Message) (workstreamNotes, error) {
	g := model.check(fresh, n.text)
	d := a.Delta.Unpinned()
	d.ActiveConstraints.Set = slices.DeleteFunc(d.ActiveConstraints.Set, func(it state.Item) bool { return !saidByUser(fresh, it.Text) })
	for i := range d.ActiveConstraints.Set {
		d.ActiveConstraints.Set[i].Pinned = true
	}
	for _, c := range []*state.Change{&d.KeyDecisions, &d.Tasks, &d.OpenQuestions, &d.Risks, &d.Artifacts, &d.AgentContributions} {
		c.Set = slices.DeleteFunc(c.Set, func(it state.Item) bool { return g != nil && !g.Holds(it.Text) })
	}
	said := a.Summary
	sections := workstreamSections{
		KeyFacts:         model.entries(g, said.KeyFacts, false),
		ConversationFlow: model.entries(g, said.ConversationFlow, false),
		OpenThreads:      model.entries(g, said.OpenThreads, true),
	}
	if sections.text() == "" {
		return workstreamNotes{}, &summarize.RejectedError{Reason: summarize.Ungrounded}
	}
	return workstreamNotes{text: sections.text(), summary: sections.structured(), state: n.state.ApplyWithin(d, w.Limits)}, nil
}

// withUser adds the user's task and rules, word for word, which no model is left
// to keep: to the facts where they do not stand there, and to the state.
func (w Workstream) withUser(ctx context.Context, model *asker, prev, next workstreamNotes, fresh, tail []thread.Message) (workstreamNotes, error) {
	s := model.s
	in := summarize.Input{Messages: w.extracted(fresh), Previous: &summary.Summary{CurrentTask: prev.summary.CurrentTask, Constraints: prev.summary.Constraints}}
	sum, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, in)
	if err != nil {
		return workstreamNotes{}, err
	}
	next.summary.CurrentTask, next.summary.Constraints = sum.CurrentTask, sum.Constraints
	var delta state.Delta
	items := s.requests(s.Thread.Len()-len(tail), requestRoom(w.Limit(s)))
	for _, it := range sum.Constraints {
		items = append(items, it)
		delta.ActiveConstraints.Set = append(delta.ActiveConstraints.Set, state.Item{Text: it.Text, By: "user", Pinned: true})
	}
	next.state = next.state.ApplyWithin(delta, w.Limits)
	if entries := unsaid(next.text, items); len(entries) > 0 {
		next.text = joined(strings.ToUpper(userHeading)+":\n"+strings.Join(entries, "\n"), next.text)
	}
	next.text = joined(next.text, model.filled(next.text, &sum.Summary))
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
