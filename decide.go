package palimpsest

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/summarize"
)

// dueCheck says whether a plan should be made, and why.
type dueCheck struct {
	isDue   bool
	trigger string // "auto" or "manual"
	reason  string // in words for people
	planner policy.Policy
}

// eventDetails returns the details of an event about the check, with one more.
func (d dueCheck) eventDetails(name string, value any) map[string]any {
	details := map[string]any{name: value}
	if d.reason != "" {
		details["why"] = hyphenate(d.reason)
	}
	return details
}

func (c *Compactor) checkDue(situation *policy.Situation) dueCheck {
	d := dueCheck{trigger: "auto", planner: c.config.Policy}
	d.isDue, d.reason = c.config.Policy.Due(situation)
	if situation.Forced {
		d.isDue, d.reason = true, "the provider refused the request as too long"
	}
	if (!d.isDue || isBySize(situation.Refusal)) && isTooLarge(situation) {
		d.isDue, d.reason, d.planner = true, "the provider takes no more pictures or bytes", smaller{c.config.Policy}
	}
	if limit := windowLimit(c.config.Policy, situation); !d.isDue && limit > 0 && situation.PromptTokens > limit {
		d.isDue, d.reason = true, "the request does not fit the window"
	}
	return d
}

// intoWindow shortens results where what a policy leaves is larger than the window. Where that
// is not enough, the request stays as the policy has it.
func intoWindow(ctx context.Context, p policy.Policy, situation *policy.Situation, f *policy.Fitted, failed error) (*policy.Fitted, error) {
	limit := windowLimit(p, situation)
	if limit == 0 || failed != nil && !errors.Is(failed, policy.ErrNothing) {
		return f, failed
	}
	base, tokens := situation.Current, situation.PromptTokens
	if failed == nil {
		base, tokens = f.Plan, f.Tokens
	}
	if tokens <= limit {
		return f, failed
	}
	shorter, err := situation.Shorten(ctx, p.Name(), base, limit)
	if err != nil {
		return f, failed
	}
	if failed == nil {
		shorter.Summaries, shorter.Tail, shorter.Pinned = f.Summaries, f.Tail, f.Pinned
	}
	return shorter, nil
}

// bySize reports whether the request is too large in another way than by its tokens.
func (d dueCheck) bySize() bool {
	_, is := d.planner.(smaller)
	return is
}

// decision is what a policy made of a situation.
type decision struct {
	dueCheck
	fitted   *policy.Fitted // the plan to be put in force; nil where there is none
	err      error          // why there is none
	duration time.Duration
}

// decide asks the policy for a plan, with events before and after.
func decide(ctx context.Context, s *Session, situation *policy.Situation, due dueCheck, attempt int) decision {
	if attempt == 1 {
		s.emit(ctx, event.Event{Type: event.PreCompact, TokensBefore: situation.PromptTokens, BudgetLimit: requestLimit(s.c.config.Policy, situation), Details: due.eventDetails("trigger", due.trigger)})
	}
	start := s.c.config.Now()
	f, err := due.planner.Plan(ctx, situation)
	f, err = intoWindow(ctx, s.c.config.Policy, situation, f, err)
	if err == nil {
		f, err = makeValid(ctx, due.planner, situation, f)
	}
	d := decision{dueCheck: due, fitted: f, err: err, duration: s.c.config.Now().Sub(start)}
	s.emit(ctx, summaryEvents(policy.SummariesOf(f, err))...)
	if err == nil {
		s.emit(ctx, proposalEvents(situation, f)...)
	}
	return d
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
