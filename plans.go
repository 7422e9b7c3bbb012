package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
func (t *Thread) Compact(ctx context.Context, step Step, instructions string) (*plan.Plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.append(ctx, step.Messages)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", t.id, err)
	}
	t.step = step
	f, err := t.forced(ctx, log, instructions)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", t.id, err)
	}
	return f.Plan, nil
}

// forced compacts with the trigger "manual".
func (t *Thread) forced(ctx context.Context, log *thread.Thread, instructions string) (*policy.Fitted, error) {
	for attempt := range tries {
		s, version, err := t.state(ctx, log)
		if err != nil {
			return nil, err
		}
		t.offer(s)
		s.Forced, s.Instructions = true, instructions
		f, err := t.compact(ctx, s, version, trigger{name: "manual", attempt: attempt + 1})
		if !errors.Is(err, store.ErrConflict) {
			return f, err
		}
		if log, err = t.c.config.Log.Load(ctx, t.id); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// Plan is a dry run of Compact: the plan that would be made, with its records
// and reasons. Nothing is stored, the step's messages included.
func (t *Thread) Plan(ctx context.Context, step Step) (*plan.Plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err == nil {
		log, err = log.Append(step.Messages...)
	}
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plan(%s): %w", t.id, err)
	}
	last := t.step
	t.step = step
	defer func() { t.step = last }()
	s, _, err := t.state(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plan(%s): %w", t.id, err)
	}
	s.Forced = true
	f, err := t.c.config.Policy.Plan(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plan(%s): %w", t.id, err)
	}
	return f.Plan, nil
}

// Plans returns every plan that was in force, the oldest first.
func (t *Thread) Plans(ctx context.Context) ([]*plan.Plan, error) {
	_, n, err := t.c.config.Plans.Current(ctx, t.id)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Plans(%s): %w", t.id, err)
	}
	plans := make([]*plan.Plan, n)
	for v := range plans {
		if plans[v], err = t.c.config.Plans.Plan(ctx, t.id, v+1); err != nil {
			return nil, fmt.Errorf("palimpsest.Plans(%s): %w", t.id, err)
		}
	}
	return plans, nil
}

// Undo puts version n of the plans in force again; 0 stands for no plan, so
// that everything is shown as it was said. It is itself a new version: nothing
// is forgotten by it.
func (t *Thread) Undo(ctx context.Context, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.change(ctx, func(current *plan.Plan) (*plan.Plan, error) {
		next := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: t.id, CreatedAt: t.c.config.Now().UTC(), Policy: "undo"}
		if n != 0 {
			earlier, err := t.c.config.Plans.Plan(ctx, t.id, n)
			if err != nil {
				return nil, err
			}
			same := *earlier
			next = &same
		}
		next.Memory = nil
		if current != nil {
			next.Memory = current.Memory // notes are no compaction
		}
		return next, nil
	})
	if err != nil {
		return fmt.Errorf("palimpsest.Undo(%s, %d): %w", t.id, n, err)
	}
	return nil
}

// Expand takes the record that covers a message out of the plan in force, so
// that its whole span is shown as it was said. A message that is shown already
// is an error that wraps store.ErrNotFound.
func (t *Thread) Expand(ctx context.Context, id thread.ID) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.change(ctx, func(current *plan.Plan) (*plan.Plan, error) {
		ref := plan.Ref{}
		if current != nil {
			ref = current.Actions()[id]
		}
		if ref.Action == plan.Include {
			return nil, fmt.Errorf("message %s is not hidden: %w", id, store.ErrNotFound)
		}
		next := *current
		next.Clearings = without(current.Clearings, ref, plan.Clear)
		next.Summarizations = without(current.Summarizations, ref, plan.Summarize)
		next.Externalizations = without(current.Externalizations, ref, plan.Externalize)
		next.Drops = without(current.Drops, ref, plan.Drop)
		next.CreatedAt = t.c.config.Now().UTC()
		return &next, nil
	})
	if err != nil {
		return fmt.Errorf("palimpsest.Expand(%s): %w", t.id, err)
	}
	return nil
}

func without[T any](records []T, ref plan.Ref, action plan.Action) []T {
	if ref.Action != action {
		return records
	}
	return slices.Delete(slices.Clone(records), ref.Index, ref.Index+1)
}

// change commits what edit makes of the plan in force. The plan must hold for
// the thread.
func (t *Thread) change(ctx context.Context, edit func(*plan.Plan) (*plan.Plan, error)) error {
	for range tries {
		log, err := t.c.config.Log.Load(ctx, t.id)
		if err != nil {
			return err
		}
		current, version, err := t.c.config.Plans.Current(ctx, t.id)
		if err != nil {
			return err
		}
		next, err := edit(current)
		if err != nil {
			return err
		}
		if err := next.Validate(log); err != nil {
			return err
		}
		if _, err = t.c.config.Plans.Commit(ctx, t.id, version, store.Commit{Plan: next}); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}
