package palimpsest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Step is what an agent is about to ask its model.
type Step struct {
	// Base gives model, system, tools and the request around the messages; its
	// messages are not used. May be nil.
	Base *prompt.Prompt
	// Messages are those that came since the last step: what the user said, the
	// results of tools.
	Messages []thread.Message
	// Profile is the provider that will read the prompt.
	Profile render.Profile
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request where it should be
	// smaller than that. With neither Window nor Budget only the policy's own
	// limits hold.
	Window, Output, Budget int

	// fixed is what Base takes, in tokens, where a job has only its size.
	fixed int
}

// Thread is a conversation that an agent loop goes on with: the log and the
// plans of it in the stores of a Compactor. A Thread may be used from several
// goroutines; steps of one thread follow each other.
type Thread struct {
	c     *Compactor
	id    string
	mu    sync.Mutex
	step  Step // the last one, for Overflowed and for what FinishStep prepares
	begun bool // there was one
	hard  int  // how often in a row the provider refused
}

// Thread returns the conversation of that id; it need not exist yet.
func (c *Compactor) Thread(id string) *Thread { return &Thread{c: c, id: id} }

// Append adds messages to the log without asking for a prompt.
func (t *Thread) Append(ctx context.Context, messages ...thread.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.append(ctx, messages); err != nil {
		return fmt.Errorf("palimpsest.Append(%s): %w", t.id, err)
	}
	return nil
}

// PrepareStep adds the step's messages to the log and returns the prompt to
// send: compacted when the policy finds it due, else under the plan in force, so
// that the prefix stays the same from step to step. A compaction that fails
// never stops the agent: the prompt then is the one without it, and an event
// says so. The error is that of the stores, or of the context.
func (t *Thread) PrepareStep(ctx context.Context, step Step) (*prompt.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.append(ctx, step.Messages)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.PrepareStep(%s): %w", t.id, err)
	}
	t.step, t.begun, t.hard = step, true, 0
	f, err := t.prepare(ctx, log, false)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.PrepareStep(%s): %w", t.id, err)
	}
	return f.Prompt, nil
}

// FinishStep adds the model's answer to the log.
func (t *Thread) FinishStep(ctx context.Context, answer ...thread.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hard = 0
	log, err := t.append(ctx, answer)
	if err != nil {
		return fmt.Errorf("palimpsest.FinishStep(%s): %w", t.id, err)
	}
	if t.c.config.Jobs != nil && t.begun {
		if s, _, err := t.state(ctx, log); err == nil {
			t.ahead(ctx, s)
		}
	}
	return nil
}

// ErrNoRoom is returned by Overflowed when compacting harder gave no smaller
// request: to send it again would only be refused again.
var ErrNoRoom = errors.New("the request cannot be made smaller")

// Overflowed is for a provider that refused the prompt of the last step as too
// long: it compacts harder and returns the prompt to try once more. An error
// that wraps ErrNoRoom says that there is no use in trying.
func (t *Thread) Overflowed(ctx context.Context) (*prompt.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Overflowed(%s): %w", t.id, err)
	}
	s, _, err := t.state(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Overflowed(%s): %w", t.id, err)
	}
	before := s.Prompt
	t.hard++
	f, err := t.prepare(ctx, log, true)
	switch {
	case err != nil:
		return nil, fmt.Errorf("palimpsest.Overflowed(%s): %w", t.id, err)
	case f.Tokens >= before:
		return nil, fmt.Errorf("palimpsest.Overflowed(%s): it takes %d tokens as before: %w", t.id, f.Tokens, ErrNoRoom)
	}
	t.emit(ctx, event.Event{Type: event.OverflowRecovered, TokensBefore: before, TokensAfter: f.Tokens})
	return f.Prompt, nil
}

// Compact compacts now, whether it is due or not, and returns the plan that is
// in force after it. An error that wraps policy.ErrNothing says that there was
// nothing to compact.
func (t *Thread) Compact(ctx context.Context, step Step) (*plan.Plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	log, err := t.append(ctx, step.Messages)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", t.id, err)
	}
	t.step = step
	s, version, err := t.state(ctx, log)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", t.id, err)
	}
	s.Forced = true
	f, err := t.compact(ctx, s, version, "manual")
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Compact(%s): %w", t.id, err)
	}
	return f.Plan, nil
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
	err := t.change(ctx, func(*plan.Plan) (*plan.Plan, error) {
		if n == 0 {
			return &plan.Plan{Schema: plan.SchemaVersion, ThreadID: t.id, CreatedAt: t.c.config.Now().UTC(), Policy: "undo"}, nil
		}
		return t.c.config.Plans.Plan(ctx, t.id, n)
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

// tries bounds how often a write is made again because somebody was faster.
const tries = 5

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

// append adds messages to the end of the log, whoever else does so.
func (t *Thread) append(ctx context.Context, messages []thread.Message) (*thread.Thread, error) {
	for range tries {
		log, err := t.c.config.Log.Load(ctx, t.id)
		if err != nil || len(messages) == 0 {
			return log, err
		}
		next, err := t.c.config.Log.Append(ctx, t.id, log.Version(), messages)
		if !errors.Is(err, store.ErrConflict) {
			return next, err
		}
	}
	return nil, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// state is what the policy is asked about, under the plan in force. A plan that
// does not hold for the log any more is left aside, and an event says so.
func (t *Thread) state(ctx context.Context, log *thread.Thread) (*policy.State, int, error) {
	current, version, err := t.c.config.Plans.Current(ctx, t.id)
	if err != nil {
		return nil, 0, err
	}
	s := t.c.state(log, t.step.Base, t.step.Profile)
	s.Window, s.Output, s.Budget, s.Harder = t.step.Window, t.step.Output, t.step.Budget, t.hard
	if t.step.fixed > 0 {
		s.Fixed = t.step.fixed
	}
	s.Current, s.Round = current, version
	f, err := s.Render(current)
	if err != nil && current != nil {
		t.emit(ctx, event.Event{Type: event.Failed, Err: event.ErrorClass(err)})
		s.Current = nil
		f, err = s.Render(nil)
	}
	if err != nil {
		return nil, 0, err
	}
	s.Prompt = f.Tokens
	return s, version, nil
}

// prepare compacts when it is due or forced, and renders.
func (t *Thread) prepare(ctx context.Context, log *thread.Thread, forced bool) (*policy.Fitted, error) {
	waited := false
	for range tries {
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
		due, _ := t.c.config.Policy.Due(s)
		t.emit(ctx, event.Event{Type: event.CheckStarted, TokensBefore: s.Prompt, BudgetLimit: max(s.Budget, s.Window-s.Output)})
		if !waited && !forced && t.await(ctx, due) {
			waited = true
			continue // a plan may have come into force meanwhile
		}
		if !due && !forced {
			t.ahead(ctx, s)
			return show(s, s.Current, shown)
		}
		f, err := t.compact(ctx, s, version, "auto")
		switch {
		case err == nil:
			return show(s, f.Plan, shown)
		case errors.Is(err, store.ErrConflict):
			// Somebody committed a plan or a message meanwhile: look at it first.
			if log, err = t.c.config.Log.Load(ctx, t.id); err != nil {
				return nil, err
			}
			continue
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		return show(s, s.Current, shown)
	}
	return nil, fmt.Errorf("after %d tries: %w", tries, store.ErrConflict)
}

// rehydrate reads stored content that the agent plainly means. What cannot be
// read is passed over; the sink of the rehydrator was told.
func (t *Thread) rehydrate(ctx context.Context, s *policy.State) ([]render.Rehydrated, rehydrate.TurnContext, error) {
	r := t.c.config.Rehydrator
	if r == nil || s.Current.Empty() {
		return nil, rehydrate.TurnContext{}, nil
	}
	turn := rehydrate.TurnOf(s.Thread, s.Base.Tools)
	if limit := max(s.Budget, s.Window-s.Output); limit > 0 {
		turn.Room = max(limit-s.Prompt, 1)
	}
	shown, what, err := r.Rehydrate(ctx, t.c.config.Requester, turn, s.Current)
	if err != nil && ctx.Err() != nil {
		return nil, what, ctx.Err()
	}
	return shown, what, nil
}

// show renders a plan with what was brought back for this prompt only.
func show(s *policy.State, p *plan.Plan, shown []render.Rehydrated) (*policy.Fitted, error) {
	f, err := s.Render(p)
	if err != nil || len(shown) == 0 {
		return f, err
	}
	f.Prompt, f.Manifest, err = s.Memo.Render(s.Thread, p, s.Base, &render.Options{Profile: s.Profile, Rehydrated: shown})
	return f, err
}

// compact asks the policy for a plan, keeps what it takes out, and commits it.
// The trigger is "auto" or "manual", as events tell it.
func (t *Thread) compact(ctx context.Context, s *policy.State, version int, trigger string) (*policy.Fitted, error) {
	start := t.c.config.Now()
	name := t.c.config.Policy.Name()
	t.emit(ctx, event.Event{Type: event.PreCompact, Policy: name, TokensBefore: s.Prompt})
	f, err := t.c.config.Policy.Plan(ctx, s)
	if err == nil {
		err = t.stillHolds(ctx, s, f.Plan)
	}
	if err == nil && t.c.config.Keeper != nil {
		err = t.c.config.Keeper.Save(ctx, s.Thread, f.Plan)
	}
	took := t.c.config.Now().Sub(start)
	var told []event.Event
	if err == nil {
		told = t.compacted(s, f, trigger, took)
		_, err = t.c.config.Plans.Commit(ctx, t.id, version, store.Commit{Plan: f.Plan, Events: told})
	}
	if err != nil {
		t.emit(ctx, event.Event{Type: event.Failed, Policy: name, TokensBefore: s.Prompt, Err: event.ErrorClass(err), Duration: took})
		return nil, err
	}
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

// compacted is what a compaction has to tell. The store keeps it in one step
// with the plan, so that neither is there without the other.
func (t *Thread) compacted(s *policy.State, f *policy.Fitted, trigger string, took time.Duration) []event.Event {
	var told []event.Event
	for _, ref := range f.Plan.Refs() {
		told = append(told, event.OfRecord(f.Plan.Record(ref)))
	}
	details := map[string]any{"round": s.Round + 1}
	if f.Fallback != "" {
		details["fallback"] = f.Fallback
	}
	told = append(told,
		event.Event{
			Type: event.Completed, TokensBefore: s.Prompt, TokensAfter: f.Tokens,
			TokensFreed: s.Prompt - f.Tokens, Duration: took, Err: event.ErrorClass(f.Failure), Details: details,
		},
		event.Event{Type: event.SessionStart, TokensAfter: f.Tokens, Details: map[string]any{"source": "compact"}},
		event.Event{Type: event.Boundary, TokensBefore: s.Prompt, TokensAfter: f.Tokens, Details: boundary(f, trigger)})
	now := t.c.config.Now().UTC()
	for n := range told {
		told[n].ThreadID, told[n].Policy, told[n].Time = t.id, t.c.config.Policy.Name(), now
	}
	return told
}

func (t *Thread) emit(ctx context.Context, e event.Event) {
	e.ThreadID = t.id
	event.Emit(ctx, t.c.config.Events, e)
}
