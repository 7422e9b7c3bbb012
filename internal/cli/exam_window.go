package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/choice"
	"github.com/palimpsest-ai/palimpsest/internal/eval/exam"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// answerShare is the part of a context window that is kept free for the answer.
const answerShare = 0.2

// stepByStep goes through a session as an agent's loop does, in a context window of
// so many tokens, and makes the last request: what is left after all compactions on
// the way, and not what one compaction makes of the whole session.
func stepByStep(name string, counter *token.Counter, window int) exam.Make {
	return func(ctx context.Context, s *exam.Session, _ int) (*exam.Made, error) {
		chosen, err := choice.Open(name, &choice.Options{Summarizer: policyfile.Extractive})
		if err != nil {
			return nil, err
		}
		config := chosen.Config(counter)
		logs := &store.Memory{}
		config.Log, config.Plans = logs, logs
		config.Now = func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) } // the same input gives the same bytes
		c, err := palimpsest.New(config)
		if err != nil {
			return nil, err
		}
		profile := render.For(textTarget)
		profile.Reach = render.Command
		step := palimpsest.Step{
			Base: &prompt.Prompt{Model: s.Transcript.Model}, Profile: profile,
			Window: window, Output: int(answerShare * float64(window)),
		}
		session, compactions := c.Session(s.Name), 0
		prepare := func() (*palimpsest.Prepared, error) {
			p, err := session.PrepareStep(ctx, step)
			if err == nil && p.Compacted != nil {
				compactions++
			}
			return p, err
		}
		for _, m := range uncopied.Messages(s.Transcript.Thread) {
			if m.Role != thread.Assistant {
				step.Messages = append(step.Messages, m)
				continue
			}
			if len(step.Messages) > 0 {
				if _, err := prepare(); err != nil {
					return nil, plainError{err}
				}
				step.Messages = nil
			}
			if err := session.FinishStep(ctx, nil, llm.Usage{}, m); err != nil {
				return nil, plainError{err}
			}
		}
		last, err := prepare()
		if err != nil {
			return nil, plainError{err}
		}
		return &exam.Made{Prompt: last.Prompt, Note: fmt.Sprintf("%s in a window of %d tokens", plural(compactions, "compaction"), window)}, nil
	}
}
