package palimpsest

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Session is a conversation of an agent loop. It is only a name for what the stores hold:
// two Sessions with the same id are the same conversation, in other processes too.
// Compactor.Session makes one.
//
// It may be used from several goroutines. In one process the steps of a conversation run
// one after the other. When two processes write at the same time, the second one loads
// what the first has written and tries again.
type Session struct {
	conversation
	earlier   []string
	condition Condition
	// stateOverride is the state of the running step or job; nil takes it from Memory.
	stateOverride *sessionState
}

// Session returns the conversation with that id, which need not exist yet. The earlier
// conversations, the latest first, are those it continues: where an agent summed up its
// own history and began anew with the summary, they can still be searched and read with
// the tools of Config.Recall.
func (c *Compactor) Session(id string, earlier ...string) *Session {
	return &Session{conversation: conversation{c, id}, earlier: earlier}
}

// conversation is one of a compactor's.
type conversation struct {
	c  *Compactor
	id string
}

// Condition names the versions that writes expect. The zero value accepts any.
type Condition struct {
	// Log is the number of messages that the log must have before new ones are appended,
	// Plans the version of the plan that a new one must follow; nil accepts any.
	Log, Plans *int
}

// VersionError says that a write expected another version than the stored one. Retrying
// does not help.
type VersionError struct{ Want, Have int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the write expects version %d, the stored one is %d", e.Want, e.Have)
}

// OnlyIf returns the same conversation with conditional writes: unless the condition
// holds, they fail with a *VersionError, also a compaction that PrepareStep makes.
func (s *Session) OnlyIf(condition Condition) *Session {
	out := *s
	out.condition = condition
	return &out
}

// Step is a request that an agent is about to send to its model.
type Step struct {
	// Base gives model, system, tools and the other request parameters; its messages are
	// not used. May be nil.
	Base *prompt.Prompt
	// Messages are the new ones since the last step: the user's, and tool results. Those
	// without a time get the time of their arrival.
	Messages []thread.Message
	// Cleared are messages of the log whose results the client has cleared by itself. While no
	// plan is in force they are cleared in what follows, too. May be nil.
	Cleared []thread.ID
	// Profile describes the provider that will read the prompt (render.For). The zero
	// value is a provider without special rules.
	Profile render.Profile
	// Window is the model's context window, and Output what is kept free for its answer, in
	// tokens; 0 is Base.MaxOutput. A Base that was not read from a request asks for Output, too.
	// Budget bounds the whole request where it should be smaller. Without Window and Budget,
	// those of Config.Model hold, else only the policy's own limits.
	Window, Output, Budget int
	// OwnTarget is for Session.Compact and Session.Plan, which fill Budget: with it they go
	// down to the policy's own target below Budget, as PrepareStep does. It is for a budget
	// that bounds every step, which would be full again at once.
	OwnTarget bool
	// Fixed is what system and tools take, in tokens, where Base does not hold them; else
	// 0.
	Fixed int
	// Agent asks the model that the agent itself uses, with the agent's credentials;
	// summarizers that contain an llm.Agent call it. It is never stored, so a job has
	// none. May be nil.
	Agent llm.Generator
}

// Prepared is a prompt that is ready to be sent, and what it was made from. It must not be
// modified: its messages are the log's own.
type Prepared struct {
	*prompt.Prompt
	// Manifest says where each message of the prompt came from.
	Manifest *render.Manifest
	// Step is the step it was made for, without its messages.
	Step Step
	// Version is the number of messages in the log, PlanVersion the version of the plan in
	// force; 0 for none.
	Version, PlanVersion int
	// Before is the size of the whole request when the step began, Tokens its size now, in
	// tokens, corrected by the provider's usage figures.
	Before, Tokens int
	// Compacted is the plan that this step put in force; nil if the earlier one stayed.
	Compacted *plan.Plan
	// Failed is why a compaction that was due was not made; nil if none was, or if there was
	// nothing to compact. An event has reported it.
	Failed error

	calibration calibration // without Input: what a usage figure for it is compared with
	refusals    int         // how often the provider refused the step
	limit       int         // how large the request may be, in tokens; 0 if nobody says
	mark        int         // where the next compaction is due, in tokens; 0 if that is not known
}

// PrepareStep appends the step's messages to the log and returns the prompt to send:
// compacted when the policy finds it due, else under the plan in force, so that the prefix
// stays the same from step to step. Preparing a step again appends nothing again: messages
// that are known by id, or that the log ends with, are skipped.
//
// A failed compaction never stops the agent: the prompt is then the one without it, and an
// event reports the failure. When other writers keep being faster, the step continues
// under the newest plan. The error is that of the stores or of the context, or a
// *VersionError where the session was made by OnlyIf.
func (s *Session) PrepareStep(ctx context.Context, step Step) (*Prepared, error) {
	var p *Prepared
	step = s.c.withModel(step)
	err := s.runLoaded(ctx, "PrepareStep", func(s *Session, l snapshot) (err error) {
		if l, err = appendMessages(ctx, s, l, step.Messages, true); err != nil {
			return err
		}
		asked, err := takeAsked(ctx, s, l)
		if err != nil {
			return err
		}
		if l, err = takeCleared(ctx, s, l, step.Cleared); err != nil {
			return err
		}
		step.Messages, step.Cleared = nil, nil
		p, err = prepare(ctx, s, l, planRequest{Step: step, forced: asked != nil, asked: asked})
		return err
	})
	return p, err
}

// withModel is a step whose base names Config.Model and Step.Output where it says nothing of them; a step
// of that model without limits has its window.
func (c *Compactor) withModel(step Step) Step {
	base := *cmp.Or(step.Base, &prompt.Prompt{})
	base.Model = cmp.Or(base.Model, c.config.Model)
	if base.Source == nil { // else the client's request goes on as it is
		base.MaxOutput = cmp.Or(base.MaxOutput, max(step.Output, 0))
	}
	step.Base, step.Output = &base, cmp.Or(step.Output, base.MaxOutput) // what is asked for counts to the window
	if base.Model != "" && base.Model == c.config.Model && step.Window == 0 && step.Budget == 0 {
		step.Output = c.model.AnswerReserve(step.Output, 0)
		step.Window = c.model.WindowBeside(step.Output)
	}
	return step
}

// runLocked calls do with the conversation's state, once no other step of it is running.
// name is the call for the error.
func (s *Session) runLocked(ctx context.Context, name string, do func(*Session) error) (err error) {
	defer nameCall(&err, name, s.id)
	locked := *s
	locked.stateOverride = s.state()
	select {
	case locked.stateOverride.lock <- struct{}{}:
		defer func() { <-locked.stateOverride.lock }()
		err = do(&locked)
		s.c.config.Memory.updateSize(s.conversation, locked.stateOverride)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runLoaded is runLocked with what the stores hold of the conversation.
func (s *Session) runLoaded(ctx context.Context, name string, do func(*Session, snapshot) error) error {
	return s.runLocked(ctx, name, func(s *Session) error {
		l, err := load(ctx, s)
		if err == nil {
			err = do(s, l)
		}
		return err
	})
}

// FinishStep appends the model's answer to p to the log. The provider's usage for that
// prompt corrects the counter for this conversation until the next compaction, unless it
// covers more than the prompt (Usage.Mixed). The zero Usage stands for a provider that
// reports none. With a nil p only the answer is appended.
func (s *Session) FinishStep(ctx context.Context, p *Prepared, usage wire.Usage, answer ...thread.Message) error {
	return s.runLocked(ctx, "FinishStep", func(s *Session) error { return finish(ctx, s, p, usage, answer) })
}

func finish(ctx context.Context, s *Session, p *Prepared, usage wire.Usage, answer []thread.Message) error {
	if p != nil && usage.Known && !usage.Mixed && usage.Input > 0 && p.calibration.Tokens > 0 {
		now := p.calibration
		now.Input = usage.Input
		s.state().calibration.update(ctx, s.conversation, now)
	}
	if len(answer) == 0 && s.c.config.Jobs == nil {
		return nil // nothing to be written, and nobody to prepare a plan
	}
	l, err := load(ctx, s)
	if err == nil {
		l, err = appendMessages(ctx, s, l, answer, true)
	}
	if err == nil && s.c.config.Jobs != nil && p != nil {
		if situation, err := situate(ctx, s, l, planRequest{Step: p.Step}); err == nil {
			enqueueCompaction(ctx, s, situation, p.Step)
		}
	}
	return err
}

// Appended says where messages are in the log: N of them from position First, counting
// from 0, whether they are new or were there already. Log is the whole log.
type Appended struct {
	Log      *thread.Thread
	First, N int
}

// Append appends messages to the log without preparing a prompt.
func (s *Session) Append(ctx context.Context, messages ...thread.Message) (Appended, error) {
	var out Appended
	err := s.runLoaded(ctx, "Append", func(s *Session, l snapshot) error {
		l, err := appendMessages(ctx, s, l, messages, allFromAssistant(messages))
		if err == nil {
			out = Appended{Log: l.log, First: l.firstNew, N: len(messages)}
		}
		return err
	})
	return out, err
}

// IsOverflow reports whether a provider refused a request because it does not fit into the
// model's context window. It understands the errors of the clients in llm; for a client of
// your own, wrap llm.Failure.
func IsOverflow(err error) bool { return llm.IsOverflow(err) }

// Overflowed is for a provider that refused a prompt for its size, and why is its error; nil stands
// for a prompt that is too long. It compacts harder and returns the prompt to try next. Of one that was
// refused for its pictures (llm.ErrPictures) or its bytes (llm.ErrBytes) it takes out the older half of
// the pictures, or pictures, files and large results, and nothing else if that is enough. If that is
// refused too, call it again with that prompt.
// An error that wraps ErrNoRoom says that the request cannot get smaller, or that it would not help, since
// the answer that was asked for is too long (llm.ErrOutput); other errors say why the attempt failed. A
// process that did not prepare the step passes a Prepared with only Step set.
func (s *Session) Overflowed(ctx context.Context, refused *Prepared, why error) (*Prepared, error) {
	var next *Prepared
	err := s.runLoaded(ctx, "Overflowed", func(s *Session, l snapshot) error {
		kind := kindOf(why)
		if kind == llm.ErrOutput {
			return fmt.Errorf("a shorter prompt does not help, ask for a shorter answer: %w", ErrNoRoom)
		}
		times := refused.refusals
		if l.plan != nil && l.plan.ThreadVersion == l.log.Len() {
			times = max(times, l.plan.Refused) // by another process, or for a client that asks again
		}
		p, err := prepare(ctx, s, l, planRequest{Step: refused.Step, forced: true, refusal: kind, refusals: times + 1})
		switch {
		case err != nil:
			return err
		case isBySize(kind) && p.Compacted != nil: // it may take as many tokens as before
		case p.Tokens >= p.Before && p.Failed != nil && !errors.Is(p.Failed, policy.ErrOverBudget):
			return p.Failed
		case p.Tokens >= p.Before:
			return fmt.Errorf("it still takes %d tokens: %w", p.Tokens, ErrNoRoom)
		}
		s.emit(ctx, event.Event{Type: event.OverflowShortened, TokensBefore: p.Before, TokensAfter: p.Tokens})
		next = p
		return nil
	})
	return next, err
}

// ErrNoRoom is wrapped by the error of Overflowed when compacting harder gave no smaller request: it
// would only be refused again.
var ErrNoRoom = errors.New("the request cannot be made smaller")

// nameCall puts the call that failed before an error.
func nameCall(err *error, call, id string) {
	if *err != nil {
		*err = fmt.Errorf("palimpsest.%s(%s): %w", call, id, *err)
	}
}

// TaskFinished records how the task of the conversation ended, for Quality. Without
// Config.Quality it does nothing.
func (s *Session) TaskFinished(o thread.Outcome) {
	if m := s.state().monitor; m != nil {
		m.TaskFinished(o)
	}
}

// Quality says how the conversation has fared under compaction since this process first
// used it. It is zero without Config.Quality.
func (s *Session) Quality() quality.Metrics {
	if m := s.state().monitor; m != nil {
		return m.Metrics()
	}
	return quality.Metrics{}
}
