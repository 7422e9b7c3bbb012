package palimpsest

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/quality"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// emitCheck tells whether a compaction was found due.
func (s *Session) emitCheck(ctx context.Context, situation *policy.Situation, due dueCheck) {
	s.emit(ctx, event.Event{Type: event.CheckStarted, TokensBefore: situation.PromptTokens, BudgetLimit: s.limit(situation), Details: due.eventDetails("due", due.isDue)})
}

// emitSummaries emits who was asked for summaries on the way to a plan.
func (s *Session) emitSummaries(ctx context.Context, f *policy.Fitted) {
	for _, r := range f.Summaries {
		if r.By != "" {
			s.emit(ctx, r.Event())
		}
	}
}

// emitProposals emits what was proposed on the way to a plan; a policy whose
// records are its proposals has the new ones told.
func (s *Session) emitProposals(ctx context.Context, situation *policy.Situation, f *policy.Fitted) {
	for _, p := range f.Proposals {
		s.emit(ctx, event.Event{Type: event.ProposalGenerated, Strategy: p.Strategy, Span: &p.Span, TokensFreed: p.EstimatedTokensFreed})
	}
	if f.Proposals != nil {
		return
	}
	for _, r := range f.Plan.Since(situation.Current) {
		e := event.OfRecord(r)
		e.Type = event.ProposalGenerated
		s.emit(ctx, e)
	}
}

// compactionEvents is what a compaction has to tell: of the records that
// are new, and of the whole. The store keeps it in one step with the plan, so that
// neither is there without the other.
func (s *Session) compactionEvents(l snapshot, situation *policy.Situation, d decision, attempt int) []event.Event {
	f := d.fitted
	var events []event.Event
	before, after := tokensByMessage(situation.Rendered), tokensByMessage(f)
	for _, r := range f.Plan.Since(situation.Current) {
		e := event.OfRecord(r)
		e.TokensBefore, e.TokensAfter = 0, 0
		for _, id := range e.Span.MessageIDs {
			e.TokensBefore += before[id]
			e.TokensAfter += after[id]
		}
		e.TokensFreed = e.TokensBefore - e.TokensAfter
		events = append(events, e)
		if s.c.config.Recall != nil {
			events = append(events, event.Event{Type: event.Retrieved, Strategy: "recall", Span: e.Span})
		}
	}
	details := map[string]any{"round": f.Plan.Round}
	fallback, failure := f.Fallback()
	if fallback != "" {
		details["fallback"] = fallback
	}
	if len(f.Overlaps) > 0 {
		details["overlaps"] = len(f.Overlaps)
	}
	if hits, misses := cacheCounts(f); hits+misses > 1 {
		details["cache_hits"], details["cache_misses"] = hits, misses
	}
	addExpectedSavings(details, situation, f.Tokens)
	events = append(events,
		event.Event{Type: event.PlanCommitted, Details: map[string]any{"version": l.version + 1, "attempt": attempt}},
		event.Event{
			Type: event.Completed, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, BudgetLimit: s.limit(situation),
			TokensFreed: situation.PromptTokens - f.Tokens, Duration: d.duration, Cache: f.Cache(), Err: event.ErrorClass(failure), Details: details,
		},
		event.Event{Type: event.SessionStart, TokensAfter: f.Tokens, Details: map[string]any{"source": "compact"}},
		event.Event{Type: event.Boundary, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, Details: boundaryDetails(f, d.trigger)})
	now := s.c.config.Now().UTC()
	for n := range events {
		events[n].ThreadID, events[n].TenantID, events[n].Policy, events[n].Time = s.id, s.c.config.Requester.TenantID, s.c.config.Policy.Name(), now
	}
	return events
}

// tokensByMessage is what each message takes in a request, or what stands there in its
// place.
func tokensByMessage(f *policy.Fitted) map[thread.ID]int {
	tokens := map[thread.ID]int{}
	for n, o := range f.Manifest.Messages {
		tokens[o.ID] += f.Sizes[n]
	}
	return tokens
}

// cacheCounts is how often summaries were known, and how often they had to be asked
// for.
func cacheCounts(f *policy.Fitted) (hits, misses int) {
	for _, r := range f.Summaries {
		switch r.Cache {
		case event.Hit:
			hits++
		case event.Miss:
			misses++
		}
	}
	return hits, misses
}

// boundaryDetails is the details of event.Boundary: what set the compaction off, and
// the first message after the last that stands for others. A result that is
// short in its place stands for nothing but itself.
func boundaryDetails(f *policy.Fitted, trigger string) map[string]any {
	details := map[string]any{"trigger": trigger}
	for n, o := range slices.Backward(f.Manifest.Messages) {
		if o.Synthetic && o.Record.Action != plan.Include && f.Prompt.Messages[n].Role != thread.Tool {
			break
		}
		if o.ID != "" {
			details["first_kept"] = o.ID
		}
	}
	return details
}

// maxEventName is how long a name in an event may be, in bytes.
const maxEventName = 128

// hyphenate writes words for people as a name, as the gate of package event
// lets it pass: "over-the-mark".
func hyphenate(words string) string {
	name := strings.Join(strings.FieldsFunc(words, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '%' }), "-")
	for len(name) > maxEventName {
		at := strings.LastIndexByte(name[:maxEventName], '-')
		if at <= 0 {
			return name[:0]
		}
		name = name[:at]
	}
	return name
}

// emitPrepared tells what a prompt takes, and what it would take with every
// message as it was said.
func (s *Session) emitPrepared(ctx context.Context, situation *policy.Situation, f *policy.Fitted, tokens int) {
	whole := f.Tokens
	for _, size := range f.Sizes {
		whole -= size
	}
	for _, size := range situation.PlainSizes {
		whole += size
	}
	s.emit(ctx, event.Event{Type: event.PromptPrepared, TokensBefore: whole, TokensAfter: tokens, TokensFreed: whole - tokens, BudgetLimit: s.limit(situation)})
}

// TaskFinished tells how the task of the conversation ended, for Quality. Without
// Config.Quality it does nothing.
func (s *Session) TaskFinished(o thread.Outcome) {
	if m := s.state().monitor; m != nil {
		m.TaskFinished(o)
	}
}

// Quality says how the conversation fared under compaction since this process
// first used it. It is zero without Config.Quality.
func (s *Session) Quality() quality.Metrics {
	if m := s.state().monitor; m != nil {
		return m.Metrics()
	}
	return quality.Metrics{}
}
