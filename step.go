package palimpsest

import (
	"cmp"
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
)

// prepare takes a step from the loaded log to the prompt: situate, decide, commit, render,
// deliver. After a conflict with another writer it loads again and decides again, at most
// maxAttempts times; then it renders under the newest plan.
func prepare(ctx context.Context, s *Session, loaded snapshot, q planRequest) (*Prepared, error) {
	waited, attempt := notWaited, 1
	for {
		situation, err := situate(ctx, s, loaded, q)
		if err != nil {
			return nil, err
		}
		situation, rehydrated, err := bringBack(ctx, s, situation)
		if err != nil {
			return nil, err
		}
		due := s.c.checkDue(situation)
		if q.asked != nil {
			due = dueCheck{isDue: true, trigger: "manual", reason: "the model asked for it", planner: asked{s.c.config.Policy}}
		}
		s.emit(ctx, event.Event{Type: event.CheckStarted, TokensBefore: situation.PromptTokens, BudgetLimit: requestLimit(s.c.config.Policy, situation), Details: due.eventDetails("due", due.isDue)})
		if waited == notWaited && !q.forced && !due.bySize() {
			if waited = waitForJob(ctx, s, situation, due.isDue, q.Step); waited != notWaited {
				if loaded, err = reload(ctx, s, loaded); err != nil {
					return nil, err
				}
				continue // a plan may have come into force meanwhile
			}
		}
		if !due.isDue {
			enqueueCompaction(ctx, s, situation, q.Step)
		}
		inForce, failed := situation.Current, error(nil)
		if due.isDue && (waited != waitedMaySend || !fitsLimit(s.c.config.Policy, situation)) {
			d := decide(ctx, s, situation, due, attempt)
			err = commit(ctx, s, loaded, situation, d, attempt)
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
				if loaded, err = reload(ctx, s, loaded); err != nil {
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
		p, err := deliver(ctx, s, loaded, situation, inForce, f, rehydrated, q)
		if err == nil {
			p.Failed = failed
		}
		return p, err
	}
}

// compactNow makes the plan that a person or a job asked for, and puts it in force.
func compactNow(ctx context.Context, s *Session, loaded snapshot, q planRequest) (*plan.Plan, error) {
	for attempt := 1; ; attempt++ {
		loaded.usage = *cmp.Or(q.usage, &loaded.usage)
		situation, err := situate(ctx, s, loaded, q)
		if err != nil {
			return nil, err
		}
		check := dueCheck{isDue: true, trigger: "manual", planner: s.c.config.Policy}
		if !q.forced {
			check = s.c.checkDueSoon(situation)
		}
		if !check.isDue {
			return nil, nil
		}
		d := decide(ctx, s, situation, check, attempt)
		if err = commit(ctx, s, loaded, situation, d, attempt); err == nil {
			return d.fitted.Plan, nil
		}
		if !isConflict(err) || attempt == maxAttempts {
			return nil, err
		}
		if loaded, err = reload(ctx, s, loaded); err != nil {
			return nil, err
		}
	}
}
