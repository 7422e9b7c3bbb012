package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// entry is a message of the list that the agent sees under the plan in force.
type entry struct {
	thread.Message
	// at is its position in the thread; of what stands for a span, that of the
	// span's first message.
	at int
}

// recap reports whether the entry is a summary of earlier messages: what a
// record of the plan in force put there, or what an importer marked as such. It
// is told by data, so that a message that only looks like one is none (B5).
func (e *entry) recap() bool { return e.Kind == thread.Recap }

// visible is the list as the agent sees it: the messages of the thread under the
// plan in force, without those in the system's role, which are never compacted.
func (s *Situation) visible() ([]entry, error) {
	out, manifest, err := s.shown()
	if err != nil {
		return nil, fmt.Errorf("the plan in force: %w", err)
	}
	entries := make([]entry, 0, len(out.Messages))
	at := 0
	for n := range out.Messages {
		m := &out.Messages[n]
		i, known := s.Thread.Index(manifest.Messages[n].ID)
		switch {
		case !known && m.Role != thread.Tool:
			continue // what opens a request for a provider's sake is nobody's message
		case known && m.Kind != thread.Recap && uncopied.At(s.Thread, i).Role == thread.System:
			continue // whatever role the provider is given it in
		case known:
			at = i
		}
		entries = append(entries, entry{*m, at})
	}
	return entries, nil
}

// old is the part of a thread that a policy hides behind one summary.
type old struct {
	span thread.Span
	// end is the position in the thread of the first message that is kept.
	end int
	// entries are what the agent saw of it, without summaries; previous is what
	// these said, with what code knows of them.
	entries  []entry
	previous string
	known    *summary.Summary
}

// before gathers what lies before the position end of the thread. Everything
// there goes behind the new summary, what is hidden already included, but for
// messages in the system's role. ErrNothing: nothing new is there.
func (s *Situation) before(entries []entry, end int) (*old, error) {
	o := &old{end: end}
	for _, e := range entries {
		switch {
		case e.at >= end, e.Role == thread.Assistant && e.recap() && e.Text() == understood:
		case !e.recap():
			o.entries = append(o.entries, e)
		case o.previous == "":
			o.previous = e.Text()
		default:
			o.previous += "\n\n" + e.Text()
		}
	}
	if len(o.entries) == 0 {
		return nil, fmt.Errorf("all messages are among those that are kept: %w", ErrNothing)
	}
	var ids []thread.ID
	for i, m := range uncopied.All(s.Thread) {
		if i < end && m.Role != thread.System {
			ids = append(ids, m.ID)
		}
	}
	var err error
	if o.span, err = thread.NewSpan(s.Thread, ids...); err != nil {
		return nil, err
	}
	if s.Current != nil {
		for _, r := range s.Current.Summarizations {
			if i, ok := s.Thread.Index(r.Span.First()); !ok || i >= end {
				continue
			}
			sum := r.Summary
			if o.known != nil {
				sum = summary.Merge(*o.known, sum)
			}
			o.known = &sum
		}
	}
	return o, nil
}

// extract makes the structured summary of the old part without a model, in at
// most budget tokens where the task allows it.
func (s *Situation) extract(ctx context.Context, o *old, budget int) (summary.Summary, error) {
	in := summarize.Input{Previous: o.known, Context: uncopied.Messages(s.Thread)[o.end:], Budget: budget, Instructions: s.Instructions}
	var hidden plan.Actions
	if s.Current != nil {
		hidden = s.Current.Actions()
	}
	for i, m := range uncopied.All(s.Thread) {
		if i < o.end && m.Role != thread.System && hidden[m.ID].Action != plan.Summarize {
			in.Messages = append(in.Messages, *m)
		}
	}
	x := &summarize.Extractive{Counter: s.Counter.Text}
	sum, err := x.Summarize(ctx, in)
	if over, ok := errors.AsType[*summarize.BudgetError](err); ok {
		in.Budget = over.Need
		sum, err = x.Summarize(ctx, in)
	}
	return sum.Summary, err
}

// replace makes the plan that puts the given messages in place of the old part.
func (s *Situation) replace(name string, o *old, sum summary.Summary, why string, stand ...plan.Said) (*Fitted, error) {
	record := plan.Summarization{Span: o.span, Summary: sum, Stand: stand}
	record.Strategy, record.Reason = name, why
	first := -1
	for _, id := range o.span.MessageIDs {
		i, _ := s.Thread.Index(id)
		record.TokensBefore += s.Changed[i]
		if first < 0 {
			first = i
		}
	}
	for _, said := range stand {
		record.SummaryTokens += s.Counter.Text(said.Text)
	}
	for _, m := range s.Profile.Replacement(*uncopied.At(s.Thread, first), record, false) {
		record.TokensAfter += s.Count(&m)
	}
	p := s.Draft(name)
	p.Add(record)
	f, err := s.Render(p)
	if err != nil {
		return nil, err
	}
	p.CompactedTokens = f.Tokens
	return f, nil
}
