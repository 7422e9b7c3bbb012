package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Compact compacts now, whether it is due or not, and returns the plan that is
// in force after it. Instructions, mostly "", are what the user wants its
// summaries to keep in mind: models are told, other summarizers rank what holds
// its terms higher, and the plan records them. An error that wraps
// policy.ErrNothing says that there was nothing to compact.
func (s *Session) Compact(ctx context.Context, step Step, instructions string) (*plan.Plan, error) {
	var p *plan.Plan
	err := s.runLoaded(ctx, "Compact", func(s *Session, l snapshot) (err error) {
		if l, err = s.append(ctx, l, step.Messages, true); err != nil {
			return err
		}
		manual := func(*policy.Situation) dueCheck { return dueCheck{isDue: true, trigger: "manual"} }
		p, err = s.compactNow(ctx, l, step, stepOptions{forced: true, instructions: instructions}, manual)
		return err
	})
	return p, err
}

// Plan is a dry run of Compact: the plan that would be made, with its records
// and reasons. Nothing is stored, the step's messages included; what models answer on
// the way is (Config.Answers).
func (s *Session) Plan(ctx context.Context, step Step) (*plan.Plan, error) {
	var p *plan.Plan
	err := s.runLoaded(ctx, "Plan", func(s *Session, l snapshot) (err error) {
		if l.log, err = l.log.Append(s.markInjected(step.Messages, lastMessage(l.log))...); err != nil {
			return err
		}
		situation, err := s.situate(ctx, l, step, stepOptions{forced: true})
		if err != nil {
			return err
		}
		f, err := s.c.config.Policy.Plan(ctx, situation)
		if err == nil {
			p = f.Plan
		}
		return err
	})
	return p, err
}

// Plans returns every plan that was in force, the oldest first.
func (s *Session) Plans(ctx context.Context) ([]*plan.Plan, error) {
	_, n, err := s.c.config.Plans.Current(ctx, s.id)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plans(%s): %w", s.id, err)
	}
	plans := make([]*plan.Plan, n)
	for v := range plans {
		if plans[v], err = s.c.config.Plans.Plan(ctx, s.id, v+1); err != nil {
			return nil, fmt.Errorf("palimpsest.Plans(%s): %w", s.id, err)
		}
	}
	return plans, nil
}

// Undo puts version n of the plans in force again, with the memory block as it
// was then; 0 stands for no plan, so that everything is shown as it was said and
// there is no memory block. It is itself a new version, so that it can be undone in
// turn, and no compaction: rounds are counted on from where they were.
func (s *Session) Undo(ctx context.Context, n int) error {
	return s.editPlan(ctx, "Undo", func(_ *thread.Thread, next *plan.Plan) error {
		created := next.CreatedAt
		*next = plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id, Policy: "undo"}
		if n != 0 {
			earlier, err := s.c.config.Plans.Plan(ctx, s.id, n)
			if err != nil {
				return err
			}
			*next = *earlier
		}
		next.CreatedAt = created
		return nil
	})
}

// Expand takes the record that covers a message out of the plan in force, so
// that its whole span is shown as it was said. A message that is shown already
// is an error that wraps store.ErrNotFound.
func (s *Session) Expand(ctx context.Context, id thread.ID) error {
	return s.editPlan(ctx, "Expand", func(_ *thread.Thread, next *plan.Plan) error {
		ref := next.Actions()[id]
		if ref.Action == plan.Include {
			return fmt.Errorf("message %s is not hidden: %w", id, store.ErrNotFound)
		}
		*next = withoutRecord(next, ref)
		return nil
	})
}

// Pin shows a message as it was said, in this plan and in all that follow; where a
// record covers it, its whole span is shown until the next compaction. With pinned
// false the message is given free again. The ladders of policy.Auto and policy.Ladder
// keep to it; a policy with a form of its own decides without it, and a plan of such a
// policy that hides the message is refused. An id that is not in the log is an error
// that wraps thread.ErrUnknownID.
func (s *Session) Pin(ctx context.Context, id thread.ID, pinned bool) error {
	return s.editPlan(ctx, "Pin", func(log *thread.Thread, next *plan.Plan) error {
		if _, ok := log.Index(id); !ok {
			return fmt.Errorf("message %s: %w", id, thread.ErrUnknownID)
		}
		if ref := next.Actions()[id]; pinned && ref.Action != plan.Include {
			*next = withoutRecord(next, ref)
		}
		next.Pinned = slices.DeleteFunc(slices.Clone(next.Pinned), func(p thread.ID) bool { return p == id })
		if pinned {
			next.Pinned = append(next.Pinned, id)
		}
		return nil
	})
}

// withoutRecord is a plan without one of its records.
func withoutRecord(p *plan.Plan, ref plan.Ref) plan.Plan {
	next := *p
	next.Clearings = withoutIndex(p.Clearings, ref, plan.Clear)
	next.Summarizations = withoutIndex(p.Summarizations, ref, plan.Summarize)
	next.Externalizations = withoutIndex(p.Externalizations, ref, plan.Externalize)
	next.Drops = withoutIndex(p.Drops, ref, plan.Drop)
	return next
}

func withoutIndex[T any](records []T, ref plan.Ref, action plan.Action) []T {
	if ref.Action != action {
		return records
	}
	return slices.Delete(slices.Clone(records), ref.Index, ref.Index+1)
}

// editPlan puts in force what change makes of the plan in force, or of an empty one where
// there is none. The plan must hold for the thread. No change is a compaction, so the
// rounds go on as they were.
func (s *Session) editPlan(ctx context.Context, name string, change func(log *thread.Thread, next *plan.Plan) error) error {
	return s.runLoaded(ctx, name, func(s *Session, l snapshot) (err error) {
		for range maxAttempts {
			if want := s.condition.Plans; want != nil && *want != l.version {
				return &VersionError{*want, l.version} // before anything is made for nothing
			}
			next := *cmp.Or(l.plan, &plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id})
			next.CreatedAt = s.c.config.Now().UTC()
			if err := change(l.log, &next); err != nil {
				return err
			}
			next.Round = l.round
			if err := next.Validate(l.log); err != nil {
				return err
			}
			err = s.commitPlan(ctx, l.version, store.Commit{Plan: &next, Events: []event.Event{{
				Type: event.PlanCommitted, Time: next.CreatedAt, ThreadID: s.id, TenantID: s.c.config.Requester.TenantID, Details: map[string]any{"version": l.version + 1},
			}}})
			if !isConflict(err) {
				return err
			}
			if l, err = s.load(ctx); err != nil {
				return err
			}
		}
		return fmt.Errorf("after %d tries: %w", maxAttempts, store.ErrConflict)
	})
}
