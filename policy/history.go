package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// entry is a message of the list that the agent sees under the plan in force.
type entry struct {
	thread.Message
	// position is its position in the thread; for a replacement, that of the span's first
	// message.
	position int
	// isUnchanged says that it is the message at that position, with all of its parts.
	isUnchanged bool
}

// isRecap reports whether the entry is a summary of earlier messages: a replacement of the
// plan in force, or a message that an importer marked as one. Text that only looks like a
// summary does not count.
func (e *entry) isRecap() bool { return e.Kind == thread.Recap }

// visibleEntries is the list as the agent sees it: the thread under the plan in force,
// without system messages, which are never compacted.
func (s *Situation) visibleEntries() ([]entry, error) {
	out, manifest, err := s.render(s.Current)
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
		case known && m.Kind != thread.Recap && s.Thread.At(i).Role == thread.System:
			continue // whatever role the provider is given it in
		case known:
			at = i
		}
		o := manifest.Messages[n]
		plain := known && o.Record.Action == plan.Include && !o.Synthetic && len(m.Parts) == len(s.Thread.At(i).Parts)
		entries = append(entries, entry{*m, at, plain})
	}
	return entries, nil
}

// oldPart is the part of a thread that a policy replaces by one summary.
type oldPart struct {
	span thread.Span
	// end is the position in the thread of the first message that is kept.
	end int
	// entries are what the agent saw of it, without summaries. previous is the text of
	// these summaries, knownSummary the structured form of the same.
	entries      []entry
	previous     string
	knownSummary *summary.Summary
}

// history is a situation as the policies see it that put one summary in place of all that is old.
type history struct {
	*Situation
	// pinned are the positions of the messages that no record may take.
	pinned map[int]bool
}

func newHistory(s *Situation) *history { return &history{s, pinnedGroups(s)} }

// pinnedGroups are the positions of instructions, and of the messages that the user has pinned,
// with a call or a result all of its message's calls and results, which cannot be parted.
func pinnedGroups(s *Situation) map[int]bool {
	at := map[int]bool{}
	for _, i := range append(s.pinnedPositions(), strategy.Instructions(s.Thread.Messages())...) {
		if at[i] { // with another of its unit
			continue
		}
		for _, k := range s.Pairs().Together(i) {
			at[k] = true
		}
	}
	return at
}

// unpinned are the entries that a summary may take.
func (s *history) unpinned(entries []entry) []entry {
	if len(s.pinned) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return s.pinned[e.position] })
}

// oldPartBefore gathers what lies before the position end, of entries without pinned ones.
// All of it goes behind the new summary, including what is hidden already, except for
// system and pinned messages. ErrNothing: there is nothing new.
func (s *history) oldPartBefore(entries []entry, end int) (*oldPart, error) {
	o := &oldPart{end: end}
	var recaps []string
	for _, e := range entries {
		switch {
		case e.position >= end, e.isRecap() && e.Text() == understood:
		case !e.isRecap():
			o.entries = append(o.entries, e)
		default:
			if text := ownformat.StripSignatures(e.Text()); text != "" || len(recaps) > 0 {
				recaps = append(recaps, text)
			}
		}
	}
	o.previous = strings.Join(recaps, "\n\n")
	if len(o.entries) == 0 {
		return nil, fmt.Errorf("all messages are among those that are kept: %w", ErrNothing)
	}
	var err error
	if o.span, _, err = s.spanBefore(nil, end); err != nil {
		return nil, err
	}
	if s.Current != nil {
		for _, r := range s.Current.Summarizations {
			if i, ok := s.Thread.Index(r.Span.First()); !ok || i >= end {
				continue
			}
			sum := r.Summary
			if o.knownSummary != nil {
				sum = summary.Merge(*o.knownSummary, sum)
			}
			o.knownSummary = &sum
		}
	}
	return o, nil
}

// judge has the situation's summarizer, if it asks a model for that (model.Judged), say once for a plan
// which of the user's sentences stand.
func (a *summaryModel) judge(ctx context.Context, in summarize.Input) {
	by, asks := a.situation.Summarizer.(interface {
		Judge(context.Context, summarize.Input) (summarize.Input, summarize.Report)
	})
	if !asks {
		return
	}
	in.Answers = a.situation.Answers
	var report summarize.Report
	if a.judged, report = by.Judge(ctx, in); report.By != "" {
		a.otherReports = append(a.otherReports, report)
	}
}

// extractSummary makes the structured summary of the old part without a model, but for what one says of the
// user's sentences, in at most budget tokens, which are enough for the shortened task.
func (a *summaryModel) extractSummary(ctx context.Context, o *oldPart, budget int) (summary.Summary, error) {
	s := a.situation
	all := s.Thread.Messages()
	in := summarize.Input{Log: all, Previous: o.knownSummary, Context: all[o.end:], Budget: budget, StandingTokens: standingRoom(s.PromptTokens), Instructions: s.Instructions}
	hidden := s.Current.Actions()
	for i, m := range s.Thread.All() {
		if i < o.end && !m.IsInstruction() && !s.pinned[i] && hidden[m.ID].Action != plan.Summarize {
			in.Messages = append(in.Messages, *m)
		}
	}
	a.judge(ctx, in)
	in.Stands, in.Changes = a.judged.Stands, a.judged.Changes
	sum, err := (&summarize.Extractive{Counter: s.Counter.Text}).Summarize(ctx, in)
	return sum.Summary, err
}

// spanBefore is the part of the log before the position end that goes behind one record:
// all but what is pinned. fresh are its messages that the record
// before does not cover, also those that were pinned then.
func (s *history) spanBefore(before *plan.Summarization, end int) (span thread.Span, fresh []thread.Message, err error) {
	covered := map[thread.ID]bool{}
	if before != nil {
		for _, id := range before.Span.MessageIDs {
			covered[id] = true
		}
	}
	var ids []thread.ID
	for i, m := range s.Thread.Messages()[:end] {
		if s.pinned[i] {
			continue
		}
		ids = append(ids, m.ID)
		if !covered[m.ID] && !m.IsInstruction() {
			fresh = append(fresh, m)
		}
	}
	span, err = thread.NewSpan(s.Thread, ids...)
	return span, fresh, err
}

// positionOf is the position of a message of the thread.
func positionOf(t *thread.Thread, m *thread.Message) int {
	i, _ := t.Index(m.ID)
	return i
}

// currentSummary is the summary in the plan in force that the named policy made, and the
// first position after it. Plans of other policies are ignored: the log has everything.
func (s *history) currentSummary(name string, isOwn func(*plan.Summarization) bool) (*plan.Summarization, int) {
	if s.Current == nil {
		return nil, 0
	}
	for i := range s.Current.Summarizations {
		r := &s.Current.Summarizations[i]
		if last, ok := s.Thread.Index(r.Span.Last()); ok && r.Strategy == name && isOwn(r) {
			return r, last + 1
		}
	}
	return nil, 0
}

// newSummarization replaces a span by texts, and counts both.
func (s *history) newSummarization(name, why string, span thread.Span, stand ...plan.Replacement) plan.Summarization {
	r := plan.Summarization{Span: span, Stand: stand, Origin: plan.Origin{Strategy: name, Reason: why}}
	for _, id := range span.MessageIDs {
		i, _ := s.Thread.Index(id)
		r.TokensBefore += s.ChangedSizes[i]
	}
	for _, said := range stand {
		r.SummaryTokens += s.Counter.Text(said.Text)
	}
	r.TokensAfter = r.SummaryTokens
	return r
}

// planReplacement makes the plan that replaces the old part by the given messages.
func (s *history) planReplacement(name string, o *oldPart, sum summary.Summary, why string, stand ...plan.Replacement) (*Fitted, error) {
	record := s.newSummarization(name, why, o.span, stand...)
	record.Summary, record.TokensAfter = sum, 0
	first, _ := s.Thread.Index(o.span.First())
	for _, m := range s.Profile.Replacement(*s.Thread.At(first), record, false) {
		record.TokensAfter += s.Counter.Message(&m)
	}
	p := s.Draft(name)
	p.Add(record)
	return s.renderCounted(p)
}

// renderCounted renders a plan and notes its size in it.
func (s *history) renderCounted(p *plan.Plan) (*Fitted, error) {
	s.keepCleared(p)
	f, err := s.Render(p)
	if err == nil {
		f.Plan.CompactedTokens = f.Tokens
	}
	return f, err
}

// partsSize adds up the sizes of texts, reasoning, calls with their names, and results; and
// of media, where there is a measure for them.
func partsSize(parts []thread.Part, size func(string) int, media func(*thread.Media) int) int {
	n := 0
	for _, part := range parts {
		switch part := part.(type) {
		case thread.Text:
			n += size(part.Text)
		case thread.Reasoning:
			n += size(part.Text)
		case thread.Opaque:
			n += size(part.Text)
		case thread.ToolCall:
			n += size(part.Name) + size(part.Arguments)
		case thread.Media:
			if media != nil {
				n += media(&part)
			}
		case thread.ToolResult:
			n += partsSize(part.Content, size, media)
		}
	}
	return n
}

// namePolicy puts the name of the policy before an error.
func namePolicy(policy string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("policy %s: %w", policy, *err)
	}
}

func messagesOf(entries []entry) []thread.Message {
	out := make([]thread.Message, len(entries))
	for i := range entries {
		out[i] = entries[i].Message
	}
	return out
}
