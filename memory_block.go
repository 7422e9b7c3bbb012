package palimpsest

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/state"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Remember adds entries to the memory block of the session, which stands
// behind the system prompt of every prompt from then on, whatever is compacted.
// Undo brings back the block as it was with the plan that it puts in force. As long
// as there are 15 entries the oldest 10 are folded into the block's own summary: by the
// model of a policy.Workstream, else by rule. Where a model fails the entries stay,
// an event says so, and the next entry tries again.
//
// Entries speak in the system's role: put nothing there that a tool or the web
// has written. The block is part of the plan in force, so it costs one change of
// the prompt's beginning; add entries where one is due anyway.
func (s *Session) Remember(ctx context.Context, entries ...string) error {
	return s.editPlan(ctx, "Remember", func(_ *thread.Thread, next *plan.Plan) (err error) {
		var memory state.Memory
		if next.Memory != nil {
			memory = *next.Memory
		}
		if next.Empty() && next.Policy == "" {
			next.Policy = "memory"
		}
		memory, err = s.foldMemory(ctx, memory.Add(entries...))
		next.Memory = &memory
		return err
	})
}

// foldMemory is the memory after its own cycle. The error is that of ctx.
func (s *Session) foldMemory(ctx context.Context, m state.Memory) (state.Memory, error) {
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
	s.emit(ctx, event.Event{Type: event.Failed, Policy: w.Name(), Err: event.ErrorClass(err), Details: map[string]any{"fallback": "earlier_memory"}})
	return out, nil
}
