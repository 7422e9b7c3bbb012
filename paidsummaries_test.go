package palimpsest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// paid is a summarizer whose every answer costs money.
type paid struct {
	summarize.Summarizer
	answers int
}

func (p *paid) Summarize(ctx context.Context, in summarize.Input) (summarize.Result, error) {
	out, err := p.Summarizer.Summarize(ctx, in)
	if err == nil {
		p.answers++
		out.Report = summarize.Report{By: "dear-model", Cache: event.Miss}
	}
	return out, err
}

// TestPaidSummariesAreReported: every summary that a model has written is reported, also
// when its attempt failed and another made the plan, and when none did.
func TestPaidSummariesAreReported(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{MaxInputTokens: 16_000, DisableExternalization: true, DisableClearing: true}} {
		for _, pinned := range []int{0, 3, 12} {
			t.Run(fmt.Sprintf("%s, %d pinned", p.Name(), pinned), func(t *testing.T) {
				told, model := &recorder{}, &paid{Summarizer: &summarize.Extractive{Counter: o200k(t).Text}}
				c, err := palimpsest.New(palimpsest.Config{Policy: p, Summarizer: model, Events: told})
				if err != nil {
					t.Fatal(err)
				}
				s := c.Session("t")
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 16_000, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
				compacted := 0
				var failed error
				for n := range 40 {
					p, err := s.PrepareStep(t.Context(), step)
					if err != nil {
						t.Fatal(err)
					}
					if p.Compacted != nil {
						compacted++
					}
					failed = p.Failed
					if got := told.count(event.Asked); got != model.answers {
						t.Fatalf("step %d: the model has written %d summaries, %d are reported (%v)", n, model.answers, got, p.Failed)
					}
					call, result := work(n)
					if n%7 == 6 {
						result = toolMessage(fmt.Sprint("call_", n), strings.Repeat(fmt.Sprintf("line %d of many in a large file\n", n), 600))
					}
					if err := s.FinishStep(t.Context(), nil, llm.Usage{}, call); err != nil {
						t.Fatal(err)
					}
					step.Messages = []thread.Message{result}
					if n < pinned {
						log, err := s.Append(t.Context(), result)
						if err != nil {
							t.Fatal(err)
						}
						if err := s.Pin(t.Context(), log.Log.At(log.Log.Len()-1).ID, true); err != nil {
							t.Fatal(err)
						}
						step.Messages = nil
					}
				}
				t.Logf("%d compactions, %d summaries, at last %v", compacted, model.answers, failed)
				over, ok := errors.AsType[*palimpsest.BudgetError](failed)
				if ok != (pinned == 12) {
					t.Fatal(failed)
				}
				if !ok {
					return
				}
				named := 0
				for _, part := range over.Parts {
					if part.Name == "pinned messages" {
						named = part.Tokens
					}
				}
				if named < 12*1_000 {
					t.Errorf("twelve results are pinned, and the refusal says: %v", over)
				}
			})
		}
	}
}
