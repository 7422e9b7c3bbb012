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
)

// prepare takes a step from the loaded log to the prompt: situate, decide, commit, render.
// After a conflict with another writer it loads again and decides again, at most
// maxAttempts times; then it renders under the newest plan.
func (s *Session) prepare(ctx context.Context, loaded snapshot, step Step, options stepOptions) (*Prepared, error) {
	waited, attempt := notWaited, 1
	for {
		situation, err := s.situate(ctx, loaded, step, options)
		if err != nil {
			return nil, err
		}
		situation, rehydrated, err := s.rehydrate(ctx, situation)
		if err != nil {
			return nil, err
		}
		due := s.checkDue(situation)
		s.emitCheck(ctx, situation, due)
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
		if !due.isDue || waited == waitedMaySend && s.fitsLimit(situation) {
			return s.render(ctx, loaded, situation, situation.Current, rehydrated, step, options)
		}
		d := s.decide(ctx, situation, due, attempt)
		err = s.commit(ctx, loaded, situation, d, attempt)
		var stale *VersionError
		switch {
		case errors.As(err, &stale):
			return nil, err
		case err == nil:
			loaded.plan, loaded.version, loaded.round = d.fitted.Plan, loaded.version+1, d.fitted.Plan.Round
			return s.render(ctx, loaded, situation, loaded.plan, rehydrated, step, options)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !isConflict(err) || attempt == maxAttempts:
			p, renderErr := s.render(ctx, loaded, situation, situation.Current, rehydrated, step, options)
			if renderErr == nil && !errors.Is(err, policy.ErrNothing) {
				p.Failed = err
			}
			return p, renderErr
		}
		attempt++
		if loaded, err = s.reload(ctx, loaded); err != nil {
			return nil, err
		}
	}
}

// compactNow makes the plan that a person or a job asked for, and puts it in force.
func (s *Session) compactNow(ctx context.Context, loaded snapshot, step Step, options stepOptions, checkDue func(*policy.Situation) dueCheck) (*plan.Plan, error) {
	for attempt := 1; ; attempt++ {
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

func (s *Session) checkDue(situation *policy.Situation) dueCheck {
	yes, why := s.c.config.Policy.Due(situation)
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
		s.emit(ctx, event.Event{Type: event.PreCompact, TokensBefore: situation.PromptTokens, BudgetLimit: s.limit(situation), Details: due.eventDetails("trigger", due.trigger)})
	}
	start := s.c.config.Now()
	f, err := s.c.config.Policy.Plan(ctx, situation)
	d := decision{dueCheck: due, fitted: f, err: err, duration: s.c.config.Now().Sub(start)}
	s.emitSummaries(ctx, policy.SummariesOf(f, err))
	if err == nil {
		s.emitProposals(ctx, situation, f)
	}
	return d
}

// render makes the prompt under a plan. Rehydrated and recalled content goes to its end, or
// where the turn has shown it already, as far as the limit leaves room.
func (s *Session) render(ctx context.Context, loaded snapshot, situation *policy.Situation, p *plan.Plan, rehydrated []render.Rehydrated, step Step, options stepOptions) (*Prepared, error) {
	f, err := situation.Render(p)
	if err != nil {
		return nil, err
	}
	tokens, room := f.Tokens, -1
	if limit := s.limit(situation); limit > 0 {
		room = max(limit-tokens, 0)
	}
	takeFitting := func(contents []render.Rehydrated) (fit []render.Rehydrated) {
		for _, r := range contents {
			m := r.Message()
			n := situation.Count(&m)
			if room >= 0 && n > room {
				continue
			}
			if room >= 0 {
				room -= n
			}
			tokens += n
			fit = append(fit, r)
		}
		return fit
	}
	shown := takeFitting(rehydrated)
	s.emitRehydrated(ctx, shown)
	recalled := takeFitting(s.inject(ctx, loaded, situation, p, room))
	s.emitRecalled(ctx, situation, recalled)
	shown = append(shown, recalled...)
	brought := tokens - f.Tokens
	if f, err = s.place(ctx, loaded, situation, p, f, shown); err != nil {
		return nil, err
	}
	tokens = f.Tokens + brought
	out := &Prepared{
		Prompt: f.Prompt, Manifest: f.Manifest, Step: step, Version: situation.Thread.Len(), PlanVersion: loaded.version,
		Before: situation.PromptTokens, Tokens: tokens, refusals: options.refusals, limit: s.limit(situation),
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
	s.emitPrepared(ctx, situation, f, tokens)
	s.indexInBackground(ctx, situation.Thread, p, loaded.version)
	// The situation may have been counted by an older plan's factor, or by one just measured.
	applied := situation.Counter.Factor() / s.c.config.Counter.Factor()
	out.calibration = calibration{Position: situation.Thread.Len(), Version: loaded.version, Tokens: float64(tokens) / applied}
	saved := s.fixedTokens(step, situation)
	if situation.Profile.Reach == render.Told { // no tools come, and the note only with a plan
		saved = cmp.Or(step.Fixed, s.c.tokenMemo.Prompt(situation.SentBase))
	}
	s.saveLastStep(ctx, step, saved)
	return out, nil
}
