package palimpsest

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// CutOff replaces FinishStep for an answer to p that ended at the limit on the output. It
// appends the answer without its incomplete tool calls, compacts if that is due, and
// returns the prompt to continue with. Where no compaction is due, or it frees nothing,
// the error wraps policy.ErrMaxTokens and the loop should end. The answer is in the log either
// way. A process that did not prepare the step passes a Prepared with only Step set.
//
// The complete calls stay, with a result that says that they were not run, since providers
// accept no call without a result. A short user message follows, since many models refuse
// to continue an answer of their own.
func (s *Session) CutOff(ctx context.Context, p *Prepared, usage wire.Usage, answer thread.Message) (*Prepared, error) {
	var next *Prepared
	err := s.runLocked(ctx, "CutOff", func(s *Session) error {
		kept := discardTruncatedCalls(answer)
		var messages []thread.Message
		if len(kept.Parts) > 0 {
			messages = append(messages, kept)
		}
		if err := finish(ctx, s, p, usage, messages); err != nil {
			return err
		}
		s = s.OnlyIf(Condition{Plans: s.condition.Plans}) // the condition was about the answer
		l, err := load(ctx, s)
		if err != nil {
			return err
		}
		situation, err := situateAfterCutOff(ctx, s, l, p)
		if err == nil && len(messages) > 0 {
			l, err = appendMessages(ctx, s, l, cutOffNotes(kept), true)
		}
		if err != nil {
			return err
		}
		made, err := prepare(ctx, s, l, planRequest{Step: p.Step})
		switch {
		case err != nil:
			return err
		case made.Tokens >= situation.PromptTokens && made.Failed != nil:
			return made.Failed
		case made.Tokens >= situation.PromptTokens:
			return fmt.Errorf("compacting left %d of %d tokens: %w", made.Tokens, situation.PromptTokens, policy.ErrMaxTokens)
		}
		next = made
		return nil
	})
	return next, err
}

// CutOffMessages is CutOff for callers that keep the log themselves, such as a proxy: it
// writes nothing and returns the messages to append, so that the model can continue after
// a compaction. An error that wraps policy.ErrMaxTokens says that none is due.
func (s *Session) CutOffMessages(ctx context.Context, p *Prepared, answer thread.Message) ([]thread.Message, error) {
	kept := discardTruncatedCalls(answer)
	err := s.runLoaded(ctx, "CutOffMessages", func(s *Session, l snapshot) (err error) {
		if len(kept.Parts) == 0 {
			return policy.ErrMaxTokens // there is nothing to continue
		}
		if l.log, err = l.log.Append(kept); err != nil {
			return err
		}
		_, err = situateAfterCutOff(ctx, s, l, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return append([]thread.Message{kept}, cutOffNotes(kept)...), nil
}

// discardTruncatedCalls returns an answer that was cut off for length without its
// incomplete tool calls: those whose arguments are no complete JSON and, as the last part
// of the answer, one that has no arguments yet or takes free text, where nobody can tell.
// The result may have no parts.
func discardTruncatedCalls(m thread.Message) thread.Message {
	truncated := func(n int) bool {
		call, ok := m.Parts[n].(thread.ToolCall)
		last := n == len(m.Parts)-1
		switch {
		case !ok:
			return false
		case call.Type == "custom" || call.Arguments == "":
			return last
		}
		return !rawjson.Valid(call.Arguments)
	}
	var parts []thread.Part
	for n, part := range m.Parts {
		if !truncated(n) {
			parts = append(parts, part)
		}
	}
	if len(parts) == len(m.Parts) {
		return m
	}
	m.Parts, m.Frame, m.Index = parts, nil, 0
	return m
}

// situateAfterCutOff is the situation after an answer that was cut off. The error wraps
// policy.ErrMaxTokens where no compaction is due.
func situateAfterCutOff(ctx context.Context, s *Session, l snapshot, p *Prepared) (*policy.Situation, error) {
	situation, err := situate(ctx, s, l, planRequest{Step: p.Step})
	if err == nil {
		err = policy.CheckCutOff(s.c.config.Policy, situation)
	}
	return situation, err
}

// cutOffNotes are the messages after an answer that was cut off: results for its calls,
// which were not run, and a request to continue.
func cutOffNotes(kept thread.Message) (notes []thread.Message) {
	for _, call := range kept.Calls() {
		notes = append(notes, thread.NewResult(call, thread.Failure, notRunNote))
	}
	notes = append(notes, thread.NewMessage(thread.User, continueNote))
	for i := range notes {
		notes[i].Kind = thread.Injected
	}
	return notes
}

const (
	continueNote = "[The answer above reached the limit on the output and was cut off there; tool calls in it were not run. Go on from where it ends, in smaller steps.]"
	notRunNote   = "[Not run: the answer was cut off behind this call. Call again where that is still needed.]"
)
