package palimpsest

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Session is a conversation that an agent loop goes on with. It is a name for
// what the stores of its Compactor hold: two sessions of one id are the same
// conversation, in another process too. Compactor.Session makes one; the zero value
// is of no use. It may be used from several goroutines: in a process the steps of one
// conversation follow each other, and of two processes that write at the same time
// the second looks at what the first has written and tries again.
type Session struct {
	c             *Compactor
	id            string
	earlier       []string
	condition     Condition
	stateOverride *sessionState // what a step that is being taken holds, or a job's; nil: Memory's
}

// Session returns the conversation of that id; it need not exist yet. It goes on
// from the earlier ones, the latest first: where an agent summed up its own
// history and began anew with the summary, what the earlier conversations hold
// can still be searched and read with the tools of Config.Recall.
func (c *Compactor) Session(id string, earlier ...string) *Session {
	return &Session{c: c, id: id, earlier: earlier}
}

// Condition names the versions that writes are made for. The zero value stands
// for whatever is there.
type Condition struct {
	// Log is the number of messages behind which new ones go, Plans the version
	// of the plan that a new one follows; nil is any.
	Log, Plans *int
}

// VersionError says that a write was made for another version than the one that
// is there. Trying again would not help.
type VersionError struct{ Want, Have int }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("written for version %d, it is at %d", e.Want, e.Have)
}

// OnlyIf returns the same conversation as a session whose writes are refused with a
// *VersionError unless the condition holds. A compaction that PrepareStep finds due
// is refused so too, but is no error of the step: it goes on under the plan in force.
func (s *Session) OnlyIf(condition Condition) *Session {
	out := *s
	out.condition = condition
	return &out
}

// Step is what an agent is about to ask its model.
type Step struct {
	// Base gives model, system, tools and the request around the messages; its
	// messages are not used. May be nil.
	Base *prompt.Prompt
	// Messages are those that came since the last step: what the user said, the
	// results of tools. Those without a time are given that of their arrival.
	Messages []thread.Message
	// Profile is the provider that will read the prompt (render.For). The zero value
	// is one without rules of its own.
	Profile render.Profile
	// Window is the model's context window and Output what is kept free for its
	// answer, in tokens. Budget bounds the whole request where it should be
	// smaller than that. With neither Window nor Budget only the policy's own
	// limits hold.
	Window, Output, Budget int
	// Fixed is what system and tools take, in tokens, where Base does not hold them; 0
	// where it does.
	Fixed int
	// Agent asks the model that the agent itself talks to, with the agent's own
	// credentials: summarizers in which an llm.Agent stands ask it. It is kept nowhere;
	// a job has none. May be nil.
	Agent llm.Generator
}

// Prepared is a prompt that is ready to be sent, and what it was made from. It
// is a value: nothing in it may be written to.
type Prepared struct {
	*prompt.Prompt
	// Manifest says where each message of the prompt came from.
	Manifest *render.Manifest
	// Step is the step that it was made for, without its messages.
	Step Step
	// Version is how many messages the log had, PlanVersion the version of the
	// plan in force; 0 where there is none.
	Version, PlanVersion int
	// Before is what the whole request took when the step began, Tokens what it
	// takes now, in tokens, as corrected by what the provider counted.
	Before, Tokens int
	// Compacted is the plan that the step has put in force; nil where the one
	// before it stayed.
	Compacted *plan.Plan

	calibration calibration // without Input: what a usage figure for it is compared with
	refusals    int         // how often the provider refused the step
}

// PrepareStep adds the step's messages to the log and returns the prompt to
// send: compacted when the policy finds it due, else under the plan in force, so
// that the prefix stays the same from step to step. A step that is prepared again
// adds nothing again: not what is known by its id, nor what the log ends with.
//
// A compaction that fails never stops the agent: the prompt then is the one without
// it, and an event says so. Where other writers are always first, the step goes on
// under the newest plan. The error is that of the stores, of the context, or a
// *VersionError where the session was made by OnlyIf.
func (s *Session) PrepareStep(ctx context.Context, step Step) (*Prepared, error) {
	var p *Prepared
	err := s.runLoaded(ctx, "PrepareStep", func(s *Session, l snapshot) (err error) {
		if l, err = s.append(ctx, l, step.Messages, true); err != nil {
			return err
		}
		step.Messages = nil
		p, err = s.prepare(ctx, l, step, stepOptions{})
		return err
	})
	return p, err
}

// runLocked does something with the conversation, once no other step of it is being taken.
// What is remembered of it stays the same until then, forgotten by Memory or not.
// An error says by name what was done.
func (s *Session) runLocked(ctx context.Context, name string, do func(*Session) error) error {
	locked := *s
	locked.stateOverride = s.state()
	var err error
	select {
	case locked.stateOverride.lock <- struct{}{}:
		defer func() { <-locked.stateOverride.lock }()
		err = do(&locked)
		s.c.config.Memory.updateSize(s, locked.stateOverride)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("palimpsest.%s(%s): %w", name, s.id, err)
	}
	return nil
}

// runLoaded is a turn with what the stores hold of the conversation.
func (s *Session) runLoaded(ctx context.Context, name string, do func(*Session, snapshot) error) error {
	return s.runLocked(ctx, name, func(s *Session) error {
		l, err := s.load(ctx)
		if err == nil {
			err = do(s, l)
		}
		return err
	})
}

// FinishStep adds the model's answer to p to the log. What the provider counted of
// that prompt corrects the counter for this conversation, until the next compaction,
// unless the count is of more than the prompt (Usage.Mixed); the zero Usage stands for
// a provider that told nothing. A nil p, from a caller who has not kept it, only adds
// the answer.
func (s *Session) FinishStep(ctx context.Context, p *Prepared, usage llm.Usage, answer ...thread.Message) error {
	return s.runLocked(ctx, "FinishStep", func(s *Session) error { return s.finish(ctx, p, usage, answer) })
}

func (s *Session) finish(ctx context.Context, p *Prepared, usage llm.Usage, answer []thread.Message) error {
	if p != nil && usage.Known && !usage.Mixed && usage.Input > 0 && p.calibration.Tokens > 0 {
		now := p.calibration
		now.Input = usage.Input
		s.calibrate(ctx, now)
	}
	if len(answer) == 0 && s.c.config.Jobs == nil {
		return nil // nothing to be written, and nobody to prepare a plan
	}
	l, err := s.load(ctx)
	if err == nil {
		l, err = s.append(ctx, l, answer, true)
	}
	if err == nil && s.c.config.Jobs != nil && p != nil {
		if situation, err := s.situate(ctx, l, p.Step, stepOptions{}); err == nil {
			s.enqueueCompaction(ctx, situation, p.Step)
		}
	}
	return err
}

// Appended says where messages stand in the log: N of them from position First on,
// which counts from 0, whether they have come just now or stood there already. Log is
// the whole log.
type Appended struct {
	Log      *thread.Thread
	First, N int
}

// Append adds messages to the log without asking for a prompt.
func (s *Session) Append(ctx context.Context, messages ...thread.Message) (Appended, error) {
	var out Appended
	err := s.runLoaded(ctx, "Append", func(s *Session, l snapshot) error {
		l, err := s.append(ctx, l, messages, allFromAssistant(messages))
		if err == nil {
			out = Appended{Log: l.log, First: l.firstNew, N: len(messages)}
		}
		return err
	})
	return out, err
}

// IsOverflow reports whether a provider refused a request because it does not
// fit into the model's context window. It understands the errors of the clients
// in llm; for one of your own, wrap llm.Failure.
func IsOverflow(err error) bool { return llm.IsOverflow(err) }

// Overflowed is for a provider that refused a prompt as too long: it compacts
// harder and returns the prompt to try once more. An error that wraps ErrNoRoom
// says that there is no use in trying. Given that prompt in turn, it compacts
// harder still. A process that did not prepare the step itself passes a Prepared
// of which only Step is set.
func (s *Session) Overflowed(ctx context.Context, refused *Prepared) (*Prepared, error) {
	var next *Prepared
	err := s.runLoaded(ctx, "Overflowed", func(s *Session, l snapshot) error {
		times := refused.refusals
		if l.plan != nil && l.plan.ThreadVersion == l.log.Len() {
			times = max(times, l.plan.Refused) // by another process, or for a client that asks again
		}
		p, err := s.prepare(ctx, l, refused.Step, stepOptions{forced: true, refusals: times + 1})
		switch {
		case err != nil:
			return err
		case p.Tokens >= p.Before:
			return fmt.Errorf("it takes %d tokens as before: %w", p.Tokens, ErrNoRoom)
		}
		s.emit(ctx, event.Event{Type: event.OverflowRecovered, TokensBefore: p.Before, TokensAfter: p.Tokens})
		next = p
		return nil
	})
	return next, err
}

// CutOff is for an answer to p that ended at the limit on the output, in place
// of FinishStep: it adds the answer to the log without the tool calls that are not whole, compacts
// when that is due, and returns the prompt to go on with. Where it is not due,
// or frees nothing, compacting would not help: the error wraps ErrMaxTokens, and
// the loop ends. The answer is in the log either way. A process that did not prepare
// the step itself passes a Prepared of which only Step is set.
//
// Only the calls that are not whole go. None of the others has run, which is what
// their results say, in the program's name, and no provider takes a call without one. A
// short message in that name stands behind the answer, since many models refuse to
// go on with an answer of their own.
func (s *Session) CutOff(ctx context.Context, p *Prepared, usage llm.Usage, answer thread.Message) (*Prepared, error) {
	var next *Prepared
	err := s.runLocked(ctx, "CutOff", func(s *Session) (err error) {
		next, err = s.cutOff(ctx, p, usage, answer)
		return err
	})
	return next, err
}

// CutOffMessages is CutOff for whoever keeps the log himself, as a proxy does: it writes
// nothing, and returns what is to be added to the log so that the model goes on after
// a compaction. An error that wraps ErrMaxTokens says that none is due.
func (s *Session) CutOffMessages(ctx context.Context, p *Prepared, answer thread.Message) ([]thread.Message, error) {
	kept := policy.DiscardTruncatedCalls(answer)
	err := s.runLoaded(ctx, "CutOffMessages", func(s *Session, l snapshot) (err error) {
		if len(kept.Parts) == 0 {
			return ErrMaxTokens // nothing is left to go on from
		}
		if l.log, err = l.log.Append(kept); err != nil {
			return err
		}
		_, err = s.situationAfterCutOff(ctx, l, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append([]thread.Message{kept}, cutOffNotes(kept)...), nil
}

// situationAfterCutOff is the situation after an answer that was cut off. Where no compaction
// is due the error wraps ErrMaxTokens.
func (s *Session) situationAfterCutOff(ctx context.Context, l snapshot, p *Prepared) (*policy.Situation, error) {
	situation, err := s.situate(ctx, l, p.Step, stepOptions{})
	if err == nil {
		err = policy.CheckCutOff(s.c.config.Policy, situation)
	}
	return situation, err
}

// cutOffNotes is what stands behind an answer that was cut off: the results of its calls,
// which were not run, and a word to go on.
func cutOffNotes(kept thread.Message) (notes []thread.Message) {
	for _, call := range kept.Calls() {
		notes = append(notes, thread.Message{Role: thread.Tool, Kind: thread.Injected, Parts: []thread.Part{thread.ToolResult{
			CallID: call.ID, Tool: call.Name, Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: notRunNote}},
		}}})
	}
	return append(notes, thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: continueNote}}})
}

const (
	continueNote = "[The answer above reached the limit on the output and was cut off there; tool calls in it were not run. Go on from where it ends, in smaller steps.]"
	notRunNote   = "[Not run: the answer was cut off behind this call. Call again where that is still needed.]"
)

func (s *Session) cutOff(ctx context.Context, p *Prepared, usage llm.Usage, answer thread.Message) (*Prepared, error) {
	kept := policy.DiscardTruncatedCalls(answer)
	var messages []thread.Message
	if len(kept.Parts) > 0 {
		messages = append(messages, kept)
	}
	if err := s.finish(ctx, p, usage, messages); err != nil {
		return nil, err
	}
	s = s.OnlyIf(Condition{Plans: s.condition.Plans}) // the answer was what the condition is about
	l, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	situation, err := s.situationAfterCutOff(ctx, l, p)
	if err != nil {
		return nil, err
	}
	if len(messages) > 0 {
		if l, err = s.append(ctx, l, cutOffNotes(kept), true); err != nil {
			return nil, err
		}
	}
	next, err := s.prepare(ctx, l, p.Step, stepOptions{})
	switch {
	case err != nil:
		return nil, err
	case next.Tokens >= situation.PromptTokens:
		return nil, fmt.Errorf("compacting left %d tokens of %d: %w", next.Tokens, situation.PromptTokens, ErrMaxTokens)
	}
	return next, nil
}

// maxAttempts bounds how often a write is made again because another one was first.
const maxAttempts = 5

// isConflict reports whether a write came second, and may be made again.
func isConflict(err error) bool { return errors.Is(err, store.ErrConflict) }
