package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// state is what the policy is asked about, under the plan in force. A plan that
// does not hold for the log any more is left aside, and an event says so.
func (t *Thread) state(ctx context.Context, log *thread.Thread) (*policy.State, int, error) {
	current, version, err := t.c.config.Plans.Current(ctx, t.id)
	if err != nil {
		return nil, 0, err
	}
	if err := t.look(ctx, version); err != nil {
		return nil, 0, err
	}
	t.tell(log, current, version)
	t.recallUsage(ctx)
	s, f, err := t.counted(ctx, log, current, version)
	if err == nil && s.Current == current && t.measure(ctx, s, f, version) {
		s, _, err = t.counted(ctx, log, current, version)
	}
	if err != nil {
		return nil, 0, err
	}
	t.price(s)
	return s, version, nil
}

// counted is the state in the figures of the counter, as corrected so far.
func (t *Thread) counted(ctx context.Context, log *thread.Thread, current *plan.Plan, version int) (*policy.State, *policy.Fitted, error) {
	base := t.around(current, t.reach.offers())
	s := t.c.state(log, base, t.step.Profile, t.usage.factor(log.Len(), version))
	s.Name = t.c.namer(ctx)
	s.Window, s.Output, s.Budget, s.Harder = t.step.Window, t.step.Output, t.step.Budget, t.hard
	if t.step.fixed > 0 {
		s.Fixed = t.step.fixed
	}
	s.Current, s.Round = current, version
	if !t.pauses.last.IsZero() {
		s.Seen = base
	}
	f, err := s.Render(current)
	if err != nil && current != nil {
		t.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err), Details: map[string]any{"fallback": "passthrough"}})
		s.Current = nil
		f, err = s.Render(nil)
	}
	if err != nil {
		return nil, nil, err
	}
	s.Prompt = f.Tokens
	return s, f, nil
}

// around is the request around the messages: the step's, with the memory block
// behind its system prompt, and with the tools that reach what was removed.
func (t *Thread) around(current *plan.Plan, offered bool) *prompt.Prompt {
	base := prompt.Prompt{}
	if t.step.Base != nil {
		base = *t.step.Base
	}
	if current != nil && current.Memory != nil {
		if text := current.Memory.Render(); text != "" {
			base.System = append(slices.Clone(base.System), prompt.System{Text: text})
		}
	}
	if offered {
		base.Tools = t.withTools(base.Tools)
	}
	return &base
}

// offer puts the tools into a state that is about to be compacted: the first
// plan that removes something is the place where they cost no cached prefix.
// What it returns takes them out again.
func (t *Thread) offer(s *policy.State) (withdraw func()) {
	base, fixed, size := s.Base, s.Fixed, s.Prompt
	if tools := t.withTools(base.Tools); len(tools) > len(base.Tools) {
		with := *base
		with.Tools = tools
		s.Base = &with
		s.Fixed += s.Counter.Tools(tools) - s.Counter.Tools(base.Tools)
		s.Prompt += s.Fixed - fixed
	}
	return func() { s.Base, s.Fixed, s.Prompt = base, fixed, size }
}

// prepare compacts when it is due or forced, and renders what is to be sent.
func (t *Thread) prepare(ctx context.Context, log *thread.Thread, forced bool) (*policy.Fitted, error) {
	waited := false
	for attempt := range tries {
		s, version, err := t.state(ctx, log)
		if err != nil {
			return nil, err
		}
		s.Forced = forced
		shown, turn, err := t.rehydrate(ctx, s)
		if err != nil {
			return nil, err
		}
		s.Allows = turn.Allows
		due, why := t.c.config.Policy.Due(s)
		details := map[string]any{"due": due}
		if why != "" {
			details["why"] = nameShaped(why)
		}
		t.emit(ctx, event.Event{Type: event.CheckStarted, TokensBefore: s.Prompt, BudgetLimit: limitOf(s), Details: details})
		if !waited && !forced && t.await(ctx, due) {
			waited = true
			continue // a plan may have come into force meanwhile
		}
		if !due && !forced {
			t.ahead(ctx, s)
			return t.show(ctx, s, s.Current, version, shown)
		}
		if forced {
			why = "the provider refused the request as too long"
		}
		withdraw := t.offer(s)
		f, err := t.compact(ctx, s, version, trigger{name: "auto", why: why, attempt: attempt + 1})
		switch {
		case err == nil:
			return t.show(ctx, s, f.Plan, version+1, shown)
		case errors.Is(err, store.ErrConflict):
			// Somebody committed a plan or a message meanwhile: look at it first.
			if log, err = t.c.config.Log.Load(ctx, t.id); err != nil {
				return nil, err
			}
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		withdraw()
		return t.show(ctx, s, s.Current, version, shown)
	}
	return nil, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// show renders a plan with what was brought back for this prompt only, and notes
// what was handed out.
func (t *Thread) show(ctx context.Context, s *policy.State, p *plan.Plan, version int, shown []render.Rehydrated) (*policy.Fitted, error) {
	f, err := s.Render(p)
	if err != nil {
		return nil, err
	}
	tokens := f.Tokens
	if shown = append(shown, t.inject(ctx, s, p, version, tokens)...); len(shown) > 0 {
		f.Prompt, f.Manifest, err = s.Memo.Render(s.Thread, p, s.Base, &render.Options{Profile: s.Profile, Rehydrated: shown})
		if err != nil {
			return nil, err
		}
		for _, r := range shown {
			tokens += s.Counter.Text(r.Text())
		}
	}
	t.sent = sent{position: s.Thread.Len(), version: version, tokens: float64(tokens) / t.usage.factor(s.Thread.Len(), s.Round)}
	t.shown = Shown{Version: s.Thread.Len(), PlanVersion: version, Tokens: tokens, Manifest: f.Manifest}
	if p == nil {
		t.shown.PlanVersion = 0 // there is none, or it did not hold
	}
	return f, nil
}

// trigger is what set a compaction off: "auto" or "manual", why, and how many
// times it was tried.
type trigger struct {
	name, why string
	attempt   int
}

// compact asks the policy for a plan, keeps what it takes out, and commits it.
func (t *Thread) compact(ctx context.Context, s *policy.State, version int, by trigger) (*policy.Fitted, error) {
	start := t.c.config.Now()
	name := t.c.config.Policy.Name()
	details := map[string]any{"trigger": by.name}
	if by.why != "" {
		details["why"] = nameShaped(by.why)
	}
	t.emit(ctx, event.Event{Type: event.PreCompact, Policy: name, TokensBefore: s.Prompt, BudgetLimit: limitOf(s), Details: details})
	var asked summaries
	f, err := t.c.config.Policy.Plan(summarize.ReportTo(ctx, asked.note), s)
	if err == nil {
		if by, failed := asked.failure(); failed != nil && f.Failure == nil {
			f.Failure, f.Fallback = failed, by
		}
		t.tellProposals(ctx, name, f)
		err = t.stillHolds(ctx, s, f.Plan)
	}
	if err == nil {
		err = t.keep(ctx, s.Thread, f.Plan)
	}
	took := t.c.config.Now().Sub(start)
	var told []event.Event
	if err == nil {
		told = t.compacted(s, f, by, version+1, took, asked.answered())
		_, err = t.c.config.Plans.Commit(ctx, t.id, version, store.Commit{Plan: f.Plan, Events: told})
	}
	if err != nil {
		if errors.Is(err, store.ErrConflict) {
			t.emit(ctx, event.Event{Type: event.PlanConflict, Policy: name, Details: map[string]any{"version": version + 1, "attempt": by.attempt}})
		}
		fallback := "passthrough"
		if !s.Current.Empty() {
			fallback = "earlier_plan"
		}
		t.emit(ctx, event.Event{
			Type: event.Failed, Policy: name, TokensBefore: s.Prompt, BudgetLimit: limitOf(s), Err: event.ErrorClass(err), Duration: took,
			Details: map[string]any{"fallback": fallback},
		})
		return nil, err
	}
	t.tell(s.Thread, f.Plan, version+1)
	for _, e := range told {
		t.emit(ctx, e)
	}
	return f, nil
}

// stillHolds reports whether a plan holds for the messages that came while it was
// made; they are shown as they are. A late result for a call that the plan hides
// is a conflict, and the plan is to be made anew.
func (t *Thread) stillHolds(ctx context.Context, s *policy.State, p *plan.Plan) error {
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil || log.Version() == s.Thread.Version() {
		return err
	}
	if err := p.Validate(log); err != nil {
		return &store.ConflictError{ThreadID: t.id, Want: s.Thread.Version(), Have: log.Version()}
	}
	return nil
}

// tellProposals emits what was proposed on the way to the plan; a policy whose
// records are its proposals has them told.
func (t *Thread) tellProposals(ctx context.Context, policyName string, f *policy.Fitted) {
	for _, p := range f.Proposals {
		t.emit(ctx, event.Event{Type: event.ProposalGenerated, Policy: policyName, Strategy: p.Strategy, Span: &p.Span, TokensFreed: p.EstimatedTokensFreed})
	}
	if f.Proposals != nil {
		return
	}
	for _, ref := range f.Plan.Refs() {
		e := event.OfRecord(f.Plan.Record(ref))
		e.Type, e.Policy = event.ProposalGenerated, policyName
		t.emit(ctx, e)
	}
}

// compacted is what a compaction has to tell (A18, C11, E4). The store keeps it
// in one step with the plan, so that neither is there without the other.
func (t *Thread) compacted(s *policy.State, f *policy.Fitted, by trigger, version int, took time.Duration, cache event.Cache) []event.Event {
	var told []event.Event
	for _, ref := range f.Plan.Refs() {
		e := event.OfRecord(f.Plan.Record(ref))
		told = append(told, e)
		if t.c.config.Recall != nil {
			told = append(told, event.Event{Type: event.Retrieved, Strategy: "recall", Span: e.Span})
		}
	}
	details := map[string]any{"round": s.Round + 1}
	if f.Fallback != "" {
		details["fallback"] = f.Fallback
	}
	expect(details, s, f.Tokens)
	told = append(told,
		event.Event{Type: event.PlanCommitted, Details: map[string]any{"version": version, "attempt": by.attempt}},
		event.Event{
			Type: event.Completed, TokensBefore: s.Prompt, TokensAfter: f.Tokens, BudgetLimit: limitOf(s),
			TokensFreed: s.Prompt - f.Tokens, Duration: took, Cache: cache, Err: event.ErrorClass(f.Failure), Details: details,
		},
		event.Event{Type: event.SessionStart, TokensAfter: f.Tokens, Details: map[string]any{"source": "compact"}},
		event.Event{Type: event.Boundary, TokensBefore: s.Prompt, TokensAfter: f.Tokens, Details: boundary(f, by.name)})
	now := t.c.config.Now().UTC()
	for n := range told {
		told[n].ThreadID, told[n].TenantID, told[n].Policy, told[n].Time = t.id, t.c.config.Requester.TenantID, t.c.config.Policy.Name(), now
	}
	return told
}

// limitOf is what the request may take, in tokens: the budget, or what the window
// leaves beside the answer; 0 where neither is known.
func limitOf(s *policy.State) int {
	if s.Budget > 0 {
		return s.Budget
	}
	return max(0, s.Window-s.Output)
}

// maxName is how long a name in an event may be, in bytes.
const maxName = 128

// nameShaped writes words for people as a name, as the gate of package event
// lets it pass: "over-the-mark".
func nameShaped(words string) string {
	name := strings.Join(strings.FieldsFunc(words, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '%' }), "-")
	for len(name) > maxName {
		at := strings.LastIndexByte(name[:maxName], '-')
		if at <= 0 {
			return name[:0]
		}
		name = name[:at]
	}
	return name
}

func (t *Thread) emit(ctx context.Context, e event.Event) {
	e.ThreadID, e.TenantID = t.id, t.c.config.Requester.TenantID
	event.Emit(ctx, t.c.config.Events, e)
}
