package model_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// priced is a model of the table, of which a cached token is cheaper.
const priced = "gpt-5.5"

// as is a generator under the name of another model.
type as struct {
	llm.Generator
	name string
}

func (a as) Model() string { return a.name }

// conversation is a request of which all but the first two messages are to be
// summarised; one of them is shown in another form than it has in the log.
func conversation(t *testing.T) (*prompt.Prompt, []thread.Message) {
	t.Helper()
	log := talk(t)
	sent := &prompt.Prompt{
		Model:    priced,
		System:   []prompt.System{{Text: "You are an agent."}},
		Tools:    []prompt.Tool{{Name: "Read", Schema: `{"type":"object"}`}, {Name: "Bash", Schema: `{"type":"object"}`}},
		Messages: append([]thread.Message(nil), log...),
	}
	sent.Messages[5].ID, sent.Messages[5].Kind = "", thread.Recap
	return sent, log[2:]
}

// TestSharedRequest holds the second form of the request: system, tools and
// messages of the conversation as they stand in the provider's cache, and one
// message more. It is sent when r·S + x is less than the transcript; the first
// form (TestRequest) is sent otherwise, and when the second comes to nothing.
func TestSharedRequest(t *testing.T) {
	sent, span := conversation(t)
	in := summarize.Input{Messages: span, Sent: sent, Instructions: "Keep what the test said.", Previous: &summary.Summary{Facts: []summary.Item{{Text: "The gateway is fine"}}}}
	// The rules of the answer take more than this small conversation, so only a
	// much larger one pays: long results that a transcript holds in full.
	in.Messages = append([]thread.Message(nil), span...)
	for i := range in.Messages {
		if in.Messages[i].Role == thread.Assistant && in.Messages[i].Text() != "" {
			parts := append([]thread.Part(nil), in.Messages[i].Parts...)
			in.Messages[i].Parts = append(parts, thread.Text{Text: strings.Repeat("and so on, ", 900)})
			sent.Messages[i+2].Parts = in.Messages[i].Parts
		}
	}
	g := llmtest.Script(llmtest.Say(honest))
	got, err := (&model.Model{Generator: as{g, priced}}).Summarize(t.Context(), in)
	if err != nil || len(got.Facts) == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	asked := g.Asked()[0]
	n := len(sent.Messages)
	if !reflect.DeepEqual(asked.Prompt.System, sent.System) || !reflect.DeepEqual(asked.Prompt.Tools, sent.Tools) || !reflect.DeepEqual(asked.Prompt.Messages[:n], sent.Messages) {
		t.Error("the beginning is not that of the conversation")
	}
	if len(asked.Prompt.Messages) != n+1 || asked.Options.Schema != nil || asked.Options.MaxOutput != 4000 {
		t.Errorf("%d messages of %d, options %+v", len(asked.Prompt.Messages), n, asked.Options)
	}
	golden(t, "shared.txt", asked.Prompt.Messages[n].Text()+"\n")

	other := *sent
	other.Model = "other"
	marked := *sent
	marked.Model = "claude-opus-4-5"
	for name, test := range map[string]struct {
		model string
		sent  *prompt.Prompt
	}{"no rates": {"other", &other}, "another model": {priced, &other}, "nothing was sent": {priced, nil}, "nothing is marked for the cache": {marked.Model, &marked}} {
		g, in := llmtest.Script(llmtest.Say(honest)), in
		in.Sent = test.sent
		if _, err := (&model.Model{Generator: as{g, test.model}}).Summarize(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if q := g.Asked()[0]; len(q.Prompt.Messages) != 1 || q.Options.Schema == nil {
			t.Errorf("%s: the conversation's request is used", name)
		}
	}

	went := llmtest.Turn{Reply: llm.Reply{Stop: wire.StopTool, Message: calls("c", "Bash", "{}")}}
	for _, first := range []llmtest.Turn{llmtest.Fail(llm.ErrOverflow), went, llmtest.Say("I go on.")} {
		g := llmtest.Script(first, llmtest.Say(honest))
		got, err := (&model.Model{Generator: as{g, priced}}).Summarize(t.Context(), in)
		if err != nil || len(got.Facts) == 0 || len(g.Asked()) != 2 || len(g.Asked()[1].Prompt.Messages) != 1 {
			t.Errorf("the first form is not asked after the second: %v", err)
		}
	}
}
