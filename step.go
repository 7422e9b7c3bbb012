package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// prepare takes a step from the loaded log to the prompt: situate, decide, commit, render,
// deliver. After a conflict with another writer it loads again and decides again, at most
// maxAttempts times; then it renders under the newest plan.
func (s *Session) prepare(ctx context.Context, loaded snapshot, step Step, options stepOptions) (*Prepared, error) {
	waited, attempt := notWaited, 1
	for {
		loaded = s.measure(ctx, loaded, step, options)
		situation, err := s.situate(ctx, loaded, step, options)
		if err != nil {
			return nil, err
		}
		situation, rehydrated, err := s.rehydrate(ctx, situation)
		if err != nil {
			return nil, err
		}
		due := s.c.checkDue(situation)
		s.emit(ctx, event.Event{Type: event.CheckStarted, TokensBefore: situation.PromptTokens, BudgetLimit: requestLimit(s.c.config.Policy, situation), Details: due.eventDetails("due", due.isDue)})
		if waited == notWaited && !options.forced {
			if waited = s.waitForJob(ctx, situation, due.isDue, step); waited != notWaited {
				if loaded, err = s.reload(ctx, loaded); err != nil {
					return nil, err
				}
				continue // a plan may have come into force meanwhile
			}
		}
		if !due.isDue {
			s.enqueueCompaction(ctx, situation, step)
		}
		inForce, failed := situation.Current, error(nil)
		if due.isDue && (waited != waitedMaySend || !fitsLimit(s.c.config.Policy, situation)) {
			d := s.decide(ctx, situation, due, attempt)
			err = s.commit(ctx, loaded, situation, d, attempt)
			switch _, stale := errors.AsType[*VersionError](err); {
			case stale:
				return nil, err
			case err == nil:
				inForce = d.fitted.Plan
				loaded.plan, loaded.version, loaded.round = inForce, loaded.version+1, inForce.Round
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case isConflict(err) && attempt < maxAttempts:
				attempt++
				if loaded, err = s.reload(ctx, loaded); err != nil {
					return nil, err
				}
				continue
			case !errors.Is(err, policy.ErrNothing):
				failed = err
			}
		}
		f, err := situation.Render(inForce)
		if err != nil {
			return nil, err
		}
		p, err := s.deliver(ctx, loaded, situation, inForce, f, rehydrated, step, options)
		if err == nil {
			p.Failed = failed
		}
		return p, err
	}
}

// compactNow makes the plan that a person or a job asked for, and puts it in force.
func (s *Session) compactNow(ctx context.Context, loaded snapshot, step Step, options stepOptions, checkDue func(*policy.Situation) dueCheck) (*plan.Plan, error) {
	for attempt := 1; ; attempt++ {
		loaded.usage = *cmp.Or(options.usage, &loaded.usage)
		loaded = s.measure(ctx, loaded, step, options)
		situation, err := s.situate(ctx, loaded, step, options)
		if err != nil {
			return nil, err
		}
		check := checkDue(situation)
		if !check.isDue {
			return nil, nil
		}
		d := s.decide(ctx, situation, check, attempt)
		if err = s.commit(ctx, loaded, situation, d, attempt); err == nil {
			return d.fitted.Plan, nil
		}
		if !isConflict(err) || attempt == maxAttempts {
			return nil, err
		}
		if loaded, err = s.reload(ctx, loaded); err != nil {
			return nil, err
		}
	}
}

// dueCheck says whether a plan should be made, and why.
type dueCheck struct {
	isDue   bool
	trigger string // "auto" or "manual"
	reason  string // in words for people
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
	yes, why := c.config.Policy.Due(situation)
	if situation.Forced {
		yes, why = true, "the provider refused the request as too long"
	}
	return dueCheck{isDue: yes, trigger: "auto", reason: why}
}

// decision is what a policy made of a situation.
type decision struct {
	dueCheck
	fitted   *policy.Fitted // the plan to be put in force; nil where there is none
	err      error          // why there is none
	duration time.Duration
}

// decide asks the policy for a plan, with events before and after.
func (s *Session) decide(ctx context.Context, situation *policy.Situation, due dueCheck, attempt int) decision {
	if attempt == 1 {
		s.emit(ctx, event.Event{Type: event.PreCompact, TokensBefore: situation.PromptTokens, BudgetLimit: requestLimit(s.c.config.Policy, situation), Details: due.eventDetails("trigger", due.trigger)})
	}
	start := s.c.config.Now()
	f, err := s.c.config.Policy.Plan(ctx, situation)
	d := decision{dueCheck: due, fitted: f, err: err, duration: s.c.config.Now().Sub(start)}
	s.emit(ctx, summaryEvents(policy.SummariesOf(f, err))...)
	if err == nil {
		s.emit(ctx, proposalEvents(situation, f)...)
	}
	return d
}

// deliver makes the prompt of a step from what was rendered: what is brought back goes to
// its end, or where the turn has shown it already, as far as the limit leaves room. Then
// events, documents and the index of what was removed follow.
func (s *Session) deliver(ctx context.Context, loaded snapshot, situation *policy.Situation, p *plan.Plan, f *policy.Fitted, rehydrated []render.Rehydrated, step Step, options stepOptions) (*Prepared, error) {
	limit, room := requestLimit(s.c.config.Policy, situation), -1
	if limit > 0 {
		room = max(limit-f.Tokens, 0)
	}
	shown, brought, room := fitContents(rehydrated, situation.Count, room)
	s.emitRehydrated(ctx, shown)
	recalled, more, _ := fitContents(s.inject(ctx, loaded, situation, p, room), situation.Count, room)
	s.emitRecalled(ctx, situation, recalled)
	shown, brought = append(shown, recalled...), brought+more
	f, err := s.place(ctx, loaded, situation, p, f, shown)
	if err != nil {
		return nil, err
	}
	tokens := f.Tokens + brought
	// The situation may have been counted by an older plan's factor, or by one just measured.
	applied := situation.Counter.Factor() / s.c.config.Counter.Factor()
	out := &Prepared{
		Prompt: f.Prompt, Manifest: f.Manifest, Step: step, Version: situation.Thread.Len(), PlanVersion: loaded.version,
		Before: situation.PromptTokens, Tokens: tokens, refusals: options.refusals, limit: limit,
		calibration: calibration{Position: situation.Thread.Len(), Version: loaded.version, Tokens: float64(tokens) / applied},
	}
	if len(shown) > 0 {
		out.Prompt, out.Manifest = render.Append(f.Prompt, f.Manifest, shown, situation.Profile)
	}
	if p != loaded.plan {
		out.PlanVersion = 0 // it did not hold
	}
	if p != situation.Current {
		out.Compacted = p
	}
	s.emit(ctx, preparedEvent(situation, f, tokens, limit))
	s.indexInBackground(ctx, situation.Thread, p, loaded.version)
	base := situation.Base
	if situation.Profile.Reach == render.Told { // no tools come, and the note only with a plan
		base = situation.SentBase
	}
	s.saveLastStep(ctx, step, cmp.Or(step.Fixed, s.c.tokenMemo.Prompt(base)))
	return out, nil
}

// fitContents are those contents that fit the room, in tokens, what they take and what is
// left. A negative room has no end.
func fitContents(contents []render.Rehydrated, count func(*thread.Message) int, room int) (fit []render.Rehydrated, tokens, left int) {
	for _, r := range contents {
		m := r.Message()
		n := count(&m)
		if room >= 0 && n > room {
			continue
		}
		if room >= 0 {
			room -= n
		}
		tokens += n
		fit = append(fit, r)
	}
	return fit, tokens, room
}
