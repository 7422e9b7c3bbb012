package policy_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// cheap is a model of the table, of which a cached token costs little.
const cheap = "gpt-5.5"

// asked keeps what a model was asked, and fails.
type asked struct{ prompts []*prompt.Prompt }

func (*asked) Model() string { return cheap }

func (a *asked) Generate(_ context.Context, p *prompt.Prompt, _ *llm.Options) (*llm.Reply, error) {
	a.prompts = append(a.prompts, p)
	return nil, &llm.APIError{Kind: llm.ErrServer}
}

// TestSummaryGoesOnFromTheCachedPrompt: what the summarizer sends first begins
// with the prompt that the provider saw last, message by message.
func TestSummaryGoesOnFromTheCachedPrompt(t *testing.T) {
	a := &asked{}
	c, err := palimpsest.New(palimpsest.Config{
		Policy:     policy.Ladder{MaxInputTokens: window, DisableExternalization: true, DisableClearing: true, PreserveRecentTurns: 1},
		Summarizer: model.New(nil, a),
	})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("queue")
	step := palimpsest.Step{Base: &prompt.Prompt{Model: cheap}, Profile: render.For(wire.Anthropic), Budget: window}
	var last *prompt.Prompt
	for n := 0; len(a.prompts) == 0; n++ {
		if n > 40 {
			t.Fatal("no summary was asked for")
		}
		news, answer := queueWork(n)
		step.Messages = news
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.prompts) == 0 {
			last = p.Prompt
		}
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, answer); err != nil {
			t.Fatal(err)
		}
	}
	first := a.prompts[0]
	if n := len(last.Messages); len(first.Messages) <= n+1 || !reflect.DeepEqual(first.Messages[:n], last.Messages) || !reflect.DeepEqual(first.System, last.System) {
		t.Errorf("it begins otherwise than the prompt before: %d messages, %d before", len(first.Messages), n)
	}
	if own := a.prompts[len(a.prompts)-1]; len(own.Messages) != 1 {
		t.Errorf("the transcript is not asked about when that fails: %d messages", len(own.Messages))
	}
}
