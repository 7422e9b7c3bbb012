package palimpsest

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

var (
	// ErrNoRoom is wrapped by the error of Overflowed when compacting harder gave
	// no smaller request: to send it again would only be refused again.
	ErrNoRoom = errors.New("the request cannot be made smaller")
	// ErrMaxTokens is wrapped by the error of CutOff when compacting would not
	// help: the loop ends, for a reason of its own (E2).
	ErrMaxTokens = policy.ErrMaxTokens
)

// IsOverflow reports whether a provider refused a request because it does not
// fit into the model's context window. It understands the errors of the clients
// in llm; for one of your own, wrap llm.Failure.
func IsOverflow(err error) bool { return llm.IsOverflow(err) }

// Overflowed is for a provider that refused the prompt of the last step as too
// long: it compacts harder and returns the prompt to try once more. An error
// that wraps ErrNoRoom says that there is no use in trying. Called again for the
// same step it compacts harder still.
func (t *Thread) Overflowed(ctx context.Context) (*prompt.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := t.overflowed(ctx)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.Overflowed(%s): %w", t.id, err)
	}
	return f.Prompt, nil
}

func (t *Thread) overflowed(ctx context.Context) (*policy.Fitted, error) {
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil {
		return nil, err
	}
	s, _, err := t.state(ctx, log)
	if err != nil {
		return nil, err
	}
	before := s.Prompt
	t.hard++
	f, err := t.prepare(ctx, log, true)
	switch {
	case err != nil:
		return nil, err
	case f.Tokens >= before:
		return nil, fmt.Errorf("it takes %d tokens as before: %w", f.Tokens, ErrNoRoom)
	}
	t.emit(ctx, event.Event{Type: event.OverflowRecovered, TokensBefore: before, TokensAfter: f.Tokens})
	return f, nil
}

// CutOff is for an answer that ended at the limit on the output (E2), in place
// of FinishStep: it adds the answer to the log without its tool calls, compacts
// when that is due, and returns the prompt to go on with. Where it is not due,
// or frees nothing, compacting would not help: the error wraps ErrMaxTokens, and
// the loop ends. The answer is in the log either way.
//
// The calls go because none of them has run: the last is not whole, and no
// provider takes the others without results. A short message in the program's
// name stands behind the answer, since many models refuse to go on with an
// answer of their own.
func (t *Thread) CutOff(ctx context.Context, usage llm.Usage, answer thread.Message) (*prompt.Prompt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, err := t.cutOff(ctx, usage, answer)
	if err != nil {
		return nil, fmt.Errorf("palimpsest.CutOff(%s): %w", t.id, err)
	}
	return f.Prompt, nil
}

const goOn = "[The answer above reached the limit on the output and was cut off there; tool calls in it were not run. Go on from where it ends, in smaller steps.]"

func (t *Thread) cutOff(ctx context.Context, usage llm.Usage, answer thread.Message) (*policy.Fitted, error) {
	kept := policy.DiscardTruncatedCalls(answer)
	if len(kept.Calls()) > 0 {
		kept = withoutCalls(kept)
	}
	var messages []thread.Message
	if len(kept.Parts) > 0 {
		messages = append(messages, kept)
	}
	if err := t.finish(ctx, usage, messages); err != nil {
		return nil, err
	}
	log, err := t.c.config.Log.Load(ctx, t.id)
	if err != nil {
		return nil, err
	}
	s, _, err := t.state(ctx, log)
	if err != nil {
		return nil, err
	}
	if err := policy.AfterLength(t.c.config.Policy, s); err != nil {
		return nil, err
	}
	before := s.Prompt
	if len(messages) > 0 {
		note := thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: goOn}}}
		if log, err = t.append(ctx, []thread.Message{note}); err != nil {
			return nil, err
		}
	}
	f, err := t.prepare(ctx, log, false)
	switch {
	case err != nil:
		return nil, err
	case f.Tokens >= before:
		return nil, fmt.Errorf("compacting left %d tokens of %d: %w", f.Tokens, before, ErrMaxTokens)
	}
	return f, nil
}

// withoutCalls returns a message without its tool calls.
func withoutCalls(m thread.Message) thread.Message {
	var parts []thread.Part
	for _, part := range m.Parts {
		if _, ok := part.(thread.ToolCall); !ok {
			parts = append(parts, part)
		}
	}
	m.Parts, m.Frame, m.Index = parts, nil, 0
	return m
}
