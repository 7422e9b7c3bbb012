package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Compact compacts now, due or not, and returns the plan in force after it. Policies with a
// ladder fill the step's Budget, as Compactor.Compact does; without one, or with OwnTarget,
// they go down to their own target. The others keep to their own rules.
//
// Instructions, mostly "", are what the user wants summaries to keep in mind: models are
// told, other summarizers rank matching content higher, and the plan records them. An error
// that wraps policy.ErrNothing says that there was nothing to compact, or that the request
// fits the Budget already.
func (s *Session) Compact(ctx context.Context, step Step, instructions string) (*plan.Plan, error) {
	var p *plan.Plan
	step = s.c.withModel(step)
	err := s.runLoaded(ctx, "Compact", func(s *Session, l snapshot) (err error) {
		if l, err = appendMessages(ctx, s, l, step.Messages, true); err != nil {
			return err
		}
		p, err = compactNow(ctx, s, l, planRequest{Step: step, forced: true, fill: step.asksForSize(), instructions: instructions})
		return err
	})
	return p, err
}

// asksForSize reports whether a compaction fills the step's budget.
func (s Step) asksForSize() bool { return s.Budget > 0 && !s.OwnTarget }

// Plan is a dry run of Compact: it returns the plan that would be made, with its records
// and reasons. Nothing is stored, not even the step's messages; only answers of models are
// cached (Config.Store).
func (s *Session) Plan(ctx context.Context, step Step) (*plan.Plan, error) {
	var p *plan.Plan
	step = s.c.withModel(step)
	err := s.runLoaded(ctx, "Plan", func(s *Session, l snapshot) (err error) {
		if l.log, err = l.log.Append(s.c.signing.markInjected(s.condition.newMessages(l.log, step.Messages), lastMessage(l.log))...); err != nil {
			return err
		}
		situation, err := situate(ctx, s, l, planRequest{Step: step, forced: true, fill: step.asksForSize()})
		if err != nil {
			return err
		}
		f, err := s.c.config.Policy.Plan(ctx, situation)
		if err == nil {
			f, err = makeValid(ctx, s.c.config.Policy, situation, f)
		}
		if err == nil {
			p = f.Plan
		}
		return err
	})
	return p, err
}

// Plans returns every plan that was in force, the oldest first.
func (s *Session) Plans(ctx context.Context) (_ []*plan.Plan, err error) {
	defer nameCall(&err, "Plans", s.id)
	_, n, err := s.c.config.Store.Plans.Current(ctx, s.id)
	if err != nil {
		return nil, err
	}
	plans := make([]*plan.Plan, n)
	for v := range plans {
		if plans[v], err = s.c.config.Store.Plans.Plan(ctx, s.id, v+1); err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// Undo puts version n of the plans in force again, with the memory block of that time; 0
// stands for no plan and no memory block, so that everything is shown as it was said. That
// is a new version, so it can be undone too, but no compaction: the count of rounds stays.
// Policy Auto compacts again once the request has grown, or where it does not fit.
func (s *Session) Undo(ctx context.Context, n int) error {
	return editPlan(ctx, s, "Undo", func(log *thread.Thread, next *plan.Plan) error {
		later := func(from int) (tokens int) {
			for i := from; i < log.Len(); i++ {
				tokens += s.c.config.Counter.Message(log.At(i))
			}
			return tokens
		}
		created, current, whole := next.CreatedAt, *next, next.OriginalTokens+later(next.ThreadVersion)
		*next = plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id, Policy: policyUndo, OriginalTokens: whole, CompactedTokens: whole}
		if n != 0 {
			earlier, err := s.c.config.Store.Plans.Plan(ctx, s.id, n)
			if err != nil {
				return err
			}
			*next = *earlier
			if showsOther(&current, next) {
				next.CompactedTokens += later(max(next.ThreadVersion, next.Edited)) // those before were counted when it was edited
			} else {
				next.CompactedTokens = current.CompactedTokens
			}
		}
		next.CreatedAt = created
		return nil
	})
}

// Expand shows a message that the plan in force hides as it was said, with its unit (a call and
// its results), beside the summary that tells of it. The next compaction may hide it again. For a
// message that is shown already the error wraps store.ErrNotFound.
func (s *Session) Expand(ctx context.Context, id thread.ID) error {
	return editPlan(ctx, s, "Expand", func(log *thread.Thread, next *plan.Plan) error {
		if next.Actions()[id].Action == plan.Include {
			return fmt.Errorf("message %s is not hidden: %w", id, store.ErrNotFound)
		}
		showAgain(s.c, log, next, id)
		return nil
	})
}

// Pin shows a message as it was said, now and in all following plans, as Expand does. With
// pinned false it releases the message. The policies leave pinned messages where they are; a plan of one
// of your own that hides one is refused. For an id that is not in the log the error
// wraps thread.ErrUnknownID.
func (s *Session) Pin(ctx context.Context, id thread.ID, pinned bool) error {
	return editPlan(ctx, s, "Pin", func(log *thread.Thread, next *plan.Plan) error {
		if _, ok := log.Index(id); !ok {
			return fmt.Errorf("message %s: %w", id, thread.ErrUnknownID)
		}
		if pinned && next.Actions()[id].Action != plan.Include {
			showAgain(s.c, log, next, id)
		}
		next.Pinned = slices.DeleteFunc(slices.Clone(next.Pinned), func(p thread.ID) bool { return p == id })
		if pinned {
			next.Pinned = append(next.Pinned, id)
		}
		return nil
	})
}

// showAgain takes a hidden message of the log out of the record that covers it, with those of its unit that
// the record covers too. A record that hides nothing more is gone.
func showAgain(c *Compactor, log *thread.Thread, next *plan.Plan, id thread.ID) {
	ref := next.Actions()[id]
	i, _ := log.Index(id)
	unit := []int{i}
	if ref.Action == plan.Summarize || ref.Action == plan.Drop { // the others part no call from its results
		unit = thread.Pair(log).Together(i)
	}
	record, back := next.Record(ref), 0
	for _, at := range unit {
		if record.Covers().Contains(log.At(at).ID) {
			back += c.config.Counter.Message(log.At(at))
		}
	}
	shown := func(id thread.ID) bool {
		at, _ := log.Index(id)
		return slices.Contains(unit, at)
	}
	if record.Covers().Without(shown).Len() == 0 {
		back = record.Made().Freed()
	}
	*next = next.Showing(ref, shown, back)
}

// editPlan puts in force what change makes of the plan in force, or of an empty one. The
// result must be valid for the thread. An edit is no compaction, so the round stays.
func editPlan(ctx context.Context, s *Session, name string, change planChange) error {
	return s.runLoaded(ctx, name, func(s *Session, l snapshot) error { return editLoaded(ctx, s, l, change) })
}

// planChange changes a plan for a log.
type planChange func(log *thread.Thread, next *plan.Plan) error

// editLoaded is editPlan for what was loaded.
func editLoaded(ctx context.Context, s *Session, l snapshot, change planChange) (err error) {
	for range maxAttempts {
		if err := checkVersion(s.condition.Plans, l.version); err != nil {
			return err
		}
		before := cmp.Or(l.plan, &plan.Plan{Schema: plan.SchemaVersion, ThreadID: s.id})
		if before.Validate(l.log) != nil { // a late result, say: its records are not in use
			before = before.WithoutRecords(l.log)
		}
		next := *before
		next.CreatedAt = s.c.config.Now().UTC()
		if err := change(l.log, &next); err != nil {
			return err
		}
		next.Round = l.round
		switch { // the answers so far were given to what was sent until now
		case showsOther(before, &next):
			next.Edited = l.log.Len()
		case next.Rewritten() < before.Rewritten():
			next.Edited = before.Rewritten()
		}
		if err := next.Validate(l.log); err != nil {
			return err
		}
		_, err = s.c.config.Store.Plans.Commit(ctx, s.id, l.version, store.Commit{Plan: &next, Events: []event.Event{{
			Type: event.PlanCommitted, Time: next.CreatedAt, ThreadID: s.id, TenantID: s.c.config.Requester.TenantID, Details: map[string]any{"version": l.version + 1},
		}}})
		if !isConflict(err) {
			return err
		}
		if l, err = load(ctx, s); err != nil {
			return err
		}
	}
	return fmt.Errorf("after %d tries: %w", maxAttempts, store.ErrConflict)
}

// policyUndo names the plan that holds nothing because somebody undid all.
const policyUndo = "undo"

// takeCleared clears the results that the client has cleared by itself while no plan of a policy or a person is in
// force, and in every plan after it: they count as little as they take, and can be searched and read as anything removed.
func takeCleared(ctx context.Context, s *Session, l snapshot, ids []thread.ID) (snapshot, error) {
	inForce := cmp.Or(l.plan, &plan.Plan{})
	actions := inForce.Actions()
	ids = slices.DeleteFunc(slices.Clone(ids), func(id thread.ID) bool { return actions[id].Action != plan.Include })
	if len(ids) == 0 || inForce.Policy != "" && inForce.Policy != injected.ByClient {
		return l, nil
	}
	err := editLoaded(ctx, s, l, func(log *thread.Thread, next *plan.Plan) error {
		for _, id := range ids {
			if i, ok := log.Index(id); ok && log.At(i).Role == thread.Tool {
				next.Clearings = append(slices.Clip(next.Clearings), plan.Clearing{Span: log.Range(i, i+1), Origin: plan.Origin{Strategy: injected.ByClient, Reason: "the client has cleared it"}})
			}
		}
		next.Policy, next.ThreadVersion = injected.ByClient, log.Version()
		return nil
	})
	if err != nil {
		return l, err
	}
	return reload(ctx, s, l)
}

// showsOther reports whether a model is sent anything else under plan b than under a.
func showsOther(a, b *plan.Plan) bool {
	return len(plan.Diff(a, b)) > 0 || a.MemoryText() != b.MemoryText()
}

// Remember adds entries to the session's memory block, which follows the system prompt in
// every prompt from then on, whatever is compacted. Undo brings back the block of the plan
// it chooses. At 15 entries the oldest 10 are folded into the block's own summary: by the
// model of a policy.Workstream, else by rule. When a model fails the entries stay, an
// event reports it, and the next entry tries again.
//
// Entries speak in the system's role: add nothing that a tool or the web has written. The
// block is part of the plan, so adding to it changes the beginning of the prompt once; do
// it where a change is due anyway.
func (s *Session) Remember(ctx context.Context, entries ...string) error {
	return editPlan(ctx, s, "Remember", func(_ *thread.Thread, next *plan.Plan) (err error) {
		memory := *cmp.Or(next.Memory, &state.Memory{})
		if next.Empty() && next.Policy == "" {
			next.Policy = "memory"
		}
		memory, err = foldMemory(ctx, s, memory.Add(entries...))
		next.Memory = &memory
		return err
	})
}

// foldMemory folds the oldest entries of a full memory block. The error is that of ctx.
func foldMemory(ctx context.Context, s *Session, m state.Memory) (state.Memory, error) {
	if _, due := m.Due(); !due {
		return m, nil
	}
	w, _ := policy.As[policy.Workstream](s.c.config.Policy)
	out, err := w.CompactMemory(ctx, m)
	if err == nil {
		return out, nil
	}
	if err := ctx.Err(); err != nil {
		return m, err
	}
	s.emit(ctx, event.Event{Type: event.Failed, Policy: w.Name(), Details: map[string]any{"fallback": "earlier_memory"}}.Failing(err))
	return out, nil
}
