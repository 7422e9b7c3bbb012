package palimpsest

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func (in conversation) emit(ctx context.Context, events ...event.Event) {
	for _, e := range events {
		e.ThreadID, e.TenantID = in.id, in.c.config.Requester.TenantID
		e.Policy = cmp.Or(e.Policy, in.c.config.Policy.Name())
		event.Emit(ctx, in.c.config.Events, e)
	}
}

// summaryEvents say which summarizers were asked.
func summaryEvents(summaries []summarize.Report) []event.Event {
	var events []event.Event
	for _, r := range summaries {
		if r.By != "" {
			events = append(events, r.Event())
		}
	}
	return events
}

// proposalEvents say what was proposed on the way to a plan; without proposals, its new
// records.
func proposalEvents(situation *policy.Situation, f *policy.Fitted) []event.Event {
	var events []event.Event
	for _, p := range f.Proposals {
		events = append(events, event.Event{Type: event.ProposalGenerated, Strategy: p.Strategy, Span: &p.Span, TokensFreed: p.EstimatedTokensFreed})
	}
	if f.Proposals != nil {
		return events
	}
	for _, r := range f.Plan.Since(situation.Current) {
		e := event.OfRecord(r)
		e.Type = event.ProposalGenerated
		events = append(events, e)
	}
	return events
}

// compactionEvents are the events of a compaction: one for each new record, and those of
// the whole. The store commits them together with the plan.
func (c *Compactor) compactionEvents(l snapshot, situation *policy.Situation, d decision, attempt int) []event.Event {
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
		if c.config.Recall != nil {
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
	var asked summarize.Report
	for _, r := range f.Summaries {
		asked = asked.With(r)
	}
	for name, value := range asked.Event().Details {
		if n, counts := value.(int); counts { // sentences of models
			details[name] = n
		}
	}
	addExpectedSavings(details, situation, f.Tokens)
	events = append(events,
		event.Event{Type: event.PlanCommitted, Details: map[string]any{"version": l.version + 1, "attempt": attempt}},
		event.Event{
			Type: event.Completed, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, BudgetLimit: requestLimit(c.config.Policy, situation),
			TokensFreed: situation.PromptTokens - f.Tokens, Duration: d.duration, Cache: f.Cache(), Err: event.ErrorClass(failure), Details: details,
		},
		event.Event{Type: event.SessionStart, TokensAfter: f.Tokens, Details: map[string]any{"source": "compact"}},
		event.Event{Type: event.Boundary, TokensBefore: situation.PromptTokens, TokensAfter: f.Tokens, Details: boundaryDetails(f, d.trigger)})
	now := c.config.Now().UTC()
	for n := range events {
		events[n].ThreadID, events[n].TenantID, events[n].Policy, events[n].Time = situation.Thread.ID(), c.config.Requester.TenantID, c.config.Policy.Name(), now
	}
	return events
}

// tokensByMessage is what each message, or its replacement, takes in a request.
func tokensByMessage(f *policy.Fitted) map[thread.ID]int {
	tokens := map[thread.ID]int{}
	for n, o := range f.Manifest.Messages {
		tokens[o.ID] += f.Sizes[n]
	}
	return tokens
}

// cacheCounts counts the summaries that were cached, and those that were not.
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

// addExpectedSavings notes what a compaction will save where prices are known: per step,
// in tokens of uncached input, and after how many steps that exceeds the cost of writing
// the new prefix.
func addExpectedSavings(details map[string]any, situation *policy.Situation, after int) {
	freed := situation.PromptTokens - after
	steps := situation.Rates.BreakEven(freed, situation.MessageTokens, situation.CacheExpired)
	if math.IsInf(steps, 1) {
		return
	}
	details["saved_per_step"] = int(situation.Rates.Read * float64(freed))
	details["pays_after_steps"] = int(math.Ceil(steps))
}

// boundaryDetails are the details of event.Boundary: what triggered the compaction, and
// the first message after the last replacement. A shortened result replaces nothing but
// itself, so it is no replacement here.
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

// maxEventName bounds a name in an event, in bytes.
const maxEventName = 128

// hyphenate writes a sentence as a name that package event accepts: "over-the-mark".
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

// preparedEvent reports the size of a prompt, and what it would be with nothing hidden.
func preparedEvent(situation *policy.Situation, f *policy.Fitted, tokens, limit int) event.Event {
	whole := f.Tokens
	for _, size := range f.Sizes {
		whole -= size
	}
	for _, size := range situation.PlainSizes {
		whole += size
	}
	return event.Event{Type: event.PromptPrepared, TokensBefore: whole, TokensAfter: tokens, TokensFreed: whole - tokens, BudgetLimit: limit}
}

// TaskFinished records how the task of the conversation ended, for Quality. Without
// Config.Quality it does nothing.
func (s *Session) TaskFinished(o thread.Outcome) {
	if m := s.state().monitor; m != nil {
		m.TaskFinished(o)
	}
}

// Quality says how the conversation has fared under compaction since this process first
// used it. It is zero without Config.Quality.
func (s *Session) Quality() quality.Metrics {
	if m := s.state().monitor; m != nil {
		return m.Metrics()
	}
	return quality.Metrics{}
}
