package palimpsest

import (
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
	done, err := s.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", s.id, err)
	}
	defer done()
	l, err := s.load(ctx)
	if err == nil {
		l, err = s.append(ctx, l, step.Messages, true)
	}
	var p *plan.Plan
	if err == nil {
		p, err = s.compactNow(ctx, l, step, how{forced: true, instructions: instructions}, func(*policy.Situation) due { return due{yes: true, trigger: "manual"} })
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", s.id, err)
	}
	return p, nil
}

// Plan is a dry run of Compact: the plan that would be made, with its records
// and reasons. Nothing is stored, the step's messages included; what models answer on
// the way is (Config.Answers).
func (s *Session) Plan(ctx context.Context, step Step) (*plan.Plan, error) {
	done, err := s.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plan(%s): %w", s.id, err)
	}
	defer done()
	l, err := s.load(ctx)
	if err == nil {
		l.log, err = l.log.Append(s.authors(step.Messages, lastOf(l.log))...)
	}
	var at *policy.Situation
	if err == nil {
		at, err = s.situate(ctx, l, step, how{forced: true})
	}
	var f *policy.Fitted
	if err == nil {
		f, err = s.c.config.Policy.Plan(ctx, at)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plan(%s): %w", s.id, err)
	}
	return f.Plan, nil
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
	err := s.change(ctx, func(current *plan.Plan) (*plan.Plan, error) {
		next := plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id, CreatedAt: s.c.config.Now().UTC(), Policy: "undo"}
		if n != 0 {
			earlier, err := s.c.config.Plans.Plan(ctx, s.id, n)
			if err != nil {
				return nil, err
			}
			next = *earlier
			next.CreatedAt = s.c.config.Now().UTC()
		}
		return &next, nil
	})
	if err != nil {
		return fmt.Errorf("palimpsest.Undo(%s, %d): %w", s.id, n, err)
	}
	return nil
}

// Expand takes the record that covers a message out of the plan in force, so
// that its whole span is shown as it was said. A message that is shown already
// is an error that wraps store.ErrNotFound.
func (s *Session) Expand(ctx context.Context, id thread.ID) error {
	err := s.change(ctx, func(current *plan.Plan) (*plan.Plan, error) {
		ref := plan.Ref{}
		if current != nil {
			ref = current.Actions()[id]
		}
		if ref.Action == plan.Include {
			return nil, fmt.Errorf("message %s is not hidden: %w", id, store.ErrNotFound)
		}
		next := withoutRecord(current, ref)
		next.CreatedAt = s.c.config.Now().UTC()
		return &next, nil
	})
	if err != nil {
		return fmt.Errorf("palimpsest.Expand(%s): %w", s.id, err)
	}
	return nil
}

// Pin shows a message as it was said, in this plan and in all that follow; where a
// record covers it, its whole span is shown until the next compaction. With pinned
// false the message is given free again. The ladders of policy.Auto and policy.Ladder
// keep to it; a policy with a form of its own decides without it, and a plan of such a
// policy that hides the message is refused. An id that is not in the log is an error
// that wraps thread.ErrUnknownID.
func (s *Session) Pin(ctx context.Context, id thread.ID, pinned bool) error {
	err := s.edit(ctx, func(log *thread.Thread, current *plan.Plan) (*plan.Plan, error) {
		if _, ok := log.Index(id); !ok {
			return nil, fmt.Errorf("message %s: %w", id, thread.ErrUnknownID)
		}
		next := plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id}
		if current != nil {
			next = *current
			if ref := current.Actions()[id]; pinned && ref.Action != plan.Include {
				next = withoutRecord(current, ref)
			}
		}
		next.Pinned = slices.DeleteFunc(slices.Clone(next.Pinned), func(p thread.ID) bool { return p == id })
		if pinned {
			next.Pinned = append(next.Pinned, id)
		}
		next.CreatedAt = s.c.config.Now().UTC()
		return &next, nil
	})
	if err != nil {
		return fmt.Errorf("palimpsest.Pin(%s): %w", s.id, err)
	}
	return nil
}

// withoutRecord is a plan without one of its records.
func withoutRecord(p *plan.Plan, ref plan.Ref) plan.Plan {
	next := *p
	next.Clearings = without(p.Clearings, ref, plan.Clear)
	next.Summarizations = without(p.Summarizations, ref, plan.Summarize)
	next.Externalizations = without(p.Externalizations, ref, plan.Externalize)
	next.Drops = without(p.Drops, ref, plan.Drop)
	return next
}

func without[T any](records []T, ref plan.Ref, action plan.Action) []T {
	if ref.Action != action {
		return records
	}
	return slices.Delete(slices.Clone(records), ref.Index, ref.Index+1)
}

// change commits what edit makes of the plan in force. The plan must hold for
// the thread. No change is a compaction, so the rounds go on as they were.
func (s *Session) change(ctx context.Context, edit func(*plan.Plan) (*plan.Plan, error)) error {
	return s.edit(ctx, func(_ *thread.Thread, current *plan.Plan) (*plan.Plan, error) { return edit(current) })
}

// edit is change for what looks at the log too.
func (s *Session) edit(ctx context.Context, edit func(*thread.Thread, *plan.Plan) (*plan.Plan, error)) error {
	done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	for range tries {
		l, err := s.load(ctx)
		if err != nil {
			return err
		}
		if want := s.only.Plans; want != nil && *want != l.version {
			return &VersionError{*want, l.version} // before anything is made for nothing
		}
		next, err := edit(l.log, l.plan)
		if err != nil {
			return err
		}
		next.Round = l.round
		if err := next.Validate(l.log); err != nil {
			return err
		}
		if err = s.put(ctx, l.version, store.Commit{Plan: next, Events: []event.Event{{
			Type: event.PlanCommitted, Time: s.c.config.Now().UTC(), ThreadID: s.id, TenantID: s.c.config.Requester.TenantID, Details: map[string]any{"version": l.version + 1},
		}}}); !conflicted(err) {
			return err
		}
	}
	return fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}
