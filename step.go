package palimpsest

import (
	"context"
	"errors"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
)

// prepare is a step from what was loaded to the prompt: situate, decide, commit,
// render. When somebody else's plan or messages were first, it looks at them and
// decides again; when that goes on, it renders under the newest plan.
func (s *Session) prepare(ctx context.Context, l loaded, step Step, how how) (*Prepared, error) {
	waited := notYet
	for attempt := 1; ; attempt++ {
		at, err := s.situate(ctx, l, step, how)
		if err != nil {
			return nil, err
		}
		at, brought, err := s.bring(ctx, at)
		if err != nil {
			return nil, err
		}
		due := s.due(at)
		s.check(ctx, at, due)
		if waited == notYet && !how.forced {
			if waited = s.wait(ctx, at, due.yes, step); waited != notYet {
				if l, err = s.again(ctx, l); err != nil {
					return nil, err
				}
				continue // a plan may have come into force meanwhile
			}
		}
		if !due.yes {
			s.ahead(ctx, at, step)
		}
		if !due.yes || waited == passes && s.fits(at) {
			return s.render(ctx, l, at, at.Current, brought, step, how)
		}
		d := s.decide(ctx, at, due, attempt)
		err = s.commit(ctx, l, at, d, attempt)
		var stale *VersionError
		switch {
		case errors.As(err, &stale):
			return nil, err
		case err == nil:
			l.plan, l.version, l.round = d.fitted.Plan, l.version+1, d.fitted.Plan.Round
			return s.render(ctx, l, at, l.plan, brought, step, how)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !conflicted(err) || attempt == tries:
			return s.render(ctx, l, at, at.Current, brought, step, how)
		}
		if l, err = s.again(ctx, l); err != nil {
			return nil, err
		}
	}
}

// compactNow makes the plan that is asked for, by a person or a job, and puts it
// in force.
func (s *Session) compactNow(ctx context.Context, l loaded, step Step, how how, due func(*policy.Situation) due) (*plan.Plan, error) {
	for attempt := 1; ; attempt++ {
		at, err := s.situate(ctx, l, step, how)
		if err != nil {
			return nil, err
		}
		why := due(at)
		if !why.yes {
			return nil, nil
		}
		d := s.decide(ctx, at, why, attempt)
		if err = s.commit(ctx, l, at, d, attempt); err == nil {
			return d.fitted.Plan, nil
		}
		if !conflicted(err) || attempt == tries {
			return nil, err
		}
		if l, err = s.again(ctx, l); err != nil {
			return nil, err
		}
	}
}

// due says whether a plan is to be made, and why.
type due struct {
	yes     bool
	trigger string // "auto" or "manual"
	why     string // in words for people
}

// with are details of an event about it.
func (d due) with(name string, value any) map[string]any {
	details := map[string]any{name: value}
	if d.why != "" {
		details["why"] = nameShaped(d.why)
	}
	return details
}

func (s *Session) due(at *policy.Situation) due {
	yes, why := s.c.config.Policy.Due(at)
	if at.Forced {
		yes, why = true, "the provider refused the request as too long"
	}
	return due{yes: yes, trigger: "auto", why: why}
}

// decision is what a policy made of a situation.
type decision struct {
	due
	fitted *policy.Fitted // the plan to be put in force; nil where there is none
	err    error          // why there is none
	took   time.Duration
}

// decide asks the policy for a plan. Before and after it events tell of it.
func (s *Session) decide(ctx context.Context, at *policy.Situation, due due, attempt int) decision {
	if attempt == 1 {
		s.emit(ctx, event.Event{Type: event.PreCompact, TokensBefore: at.Prompt, BudgetLimit: s.limit(at), Details: due.with("trigger", due.trigger)})
	}
	start := s.c.config.Now()
	f, err := s.c.config.Policy.Plan(ctx, at)
	d := decision{due: due, fitted: f, err: err, took: s.c.config.Now().Sub(start)}
	if err == nil {
		s.tellSummaries(ctx, f)
		s.tellProposals(ctx, at, f)
	}
	return d
}

// commit keeps what the plan externalizes and puts the plan in force, in one step
// with the events that tell of it. A decision without a plan, and a plan that could
// not be put in force, are told of, and are the error.
func (s *Session) commit(ctx context.Context, l loaded, at *policy.Situation, d decision, attempt int) error {
	err := d.err
	if err == nil {
		err = s.stillHolds(ctx, at, d.fitted.Plan)
	}
	if err == nil {
		err = s.keep(ctx, at.Thread, d.fitted.Plan)
	}
	if err == nil {
		err = s.putInForce(ctx, l, at, d, attempt)
	}
	if err == nil || errors.Is(err, policy.ErrNothing) {
		return err // that is no failure: the thread goes on as it is
	}
	if conflicted(err) {
		s.emit(ctx, event.Event{Type: event.PlanConflict, Details: map[string]any{"version": l.version + 1, "attempt": attempt}})
		if attempt < tries && ctx.Err() == nil {
			return err // it is made again, and ends then
		}
	}
	fallback := "passthrough"
	if !at.Current.Empty() {
		fallback = "earlier_plan"
	}
	s.emit(ctx, event.Event{
		Type: event.Failed, TokensBefore: at.Prompt, BudgetLimit: s.limit(at), Err: event.ErrorClass(err), Duration: d.took,
		Details: map[string]any{"fallback": fallback},
	})
	return err
}

// putInForce stores the plan with its events, and tells of them.
func (s *Session) putInForce(ctx context.Context, l loaded, at *policy.Situation, d decision, attempt int) error {
	told := s.compacted(l, at, d, attempt)
	if err := s.put(ctx, l.version, store.Commit{Plan: d.fitted.Plan, Events: told}); err != nil {
		return err
	}
	if k := s.cached(); k.monitor != nil {
		k.told = l.version + 1
		k.monitor.Compacted(at.Thread, d.fitted.Plan)
	}
	for _, e := range told {
		s.emit(ctx, e)
	}
	return nil
}

// put commits a plan, provided that the condition holds.
func (s *Session) put(ctx context.Context, version int, c store.Commit) error {
	if want := s.only.Plans; want != nil && *want != version {
		return &VersionError{*want, version}
	}
	_, err := s.c.config.Plans.Commit(ctx, s.id, version, c)
	return err
}

// stillHolds reports whether a plan holds for the messages that came while it was
// made; they are shown as they are. A late result for a call that the plan hides
// is a conflict, and the plan is to be made anew.
func (s *Session) stillHolds(ctx context.Context, at *policy.Situation, p *plan.Plan) error {
	log, err := s.c.config.Log.Load(ctx, s.id)
	if err != nil || log.Version() == at.Thread.Version() {
		return err
	}
	if err := p.Validate(log); err != nil {
		return &store.ConflictError{ThreadID: s.id, Want: at.Thread.Version(), Have: log.Version()}
	}
	return nil
}

// render makes the prompt under a plan. What was brought back for this prompt
// stands at its end, inside what the limit leaves.
func (s *Session) render(ctx context.Context, l loaded, at *policy.Situation, p *plan.Plan, brought []render.Rehydrated, step Step, how how) (*Prepared, error) {
	f, err := at.Render(p)
	if err != nil {
		return nil, err
	}
	tokens, room := f.Tokens, -1
	if limit := s.limit(at); limit > 0 {
		room = max(limit-tokens, 0)
	}
	take := func(contents []render.Rehydrated) (fit []render.Rehydrated) {
		for _, r := range contents {
			m := r.Message()
			n := at.Count(&m)
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
	shown := take(brought)
	s.tellBrought(ctx, shown)
	recalled := take(s.inject(ctx, l, at, p, room))
	s.tellRecalled(ctx, at, recalled)
	shown = append(shown, recalled...)
	out := &Prepared{
		Prompt: f.Prompt, Manifest: f.Manifest, Step: step, Version: at.Thread.Len(), PlanVersion: l.version,
		Before: at.Prompt, Tokens: tokens, refused: how.refused,
	}
	if len(shown) > 0 {
		out.Prompt, out.Manifest = render.Append(f.Prompt, f.Manifest, shown, at.Profile)
	}
	if p == nil {
		out.PlanVersion = 0 // there is none, or it did not hold
	}
	if p != at.Current {
		out.Compacted = p
	}
	s.tellPrepared(ctx, at, f, tokens)
	s.indexAhead(ctx, at.Thread, p, l.version)
	out.counted = calibration{Position: at.Thread.Len(), Version: l.version, Tokens: float64(tokens) / l.usage.factor(l.log.Len(), l.version)}
	s.keepStep(ctx, step, s.c.stands.Prompt(at.Base))
	return out, nil
}
