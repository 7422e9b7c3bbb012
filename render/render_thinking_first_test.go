package render_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestThinkingBeginsTheTurn: where summaries stand before a message of the model
// that begins with its reasoning, they have the user's role, however many there
// are: a turn of the model must begin with its reasoning. Plans that grow have
// several.
func TestThinkingBeginsTheTurn(t *testing.T) {
	step := func(id string) []thread.Message {
		return []thread.Message{
			{Role: thread.Assistant, Parts: []thread.Part{
				thread.Reasoning{Text: "I read " + id + ".", Source: thread.Source{API: wire.Anthropic, Raw: `{"type":"thinking","thinking":"I read.","signature":"c2VhbA=="}`}},
				thread.ToolCall{ID: id, Name: "Read", Arguments: "{}"},
			}},
			{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: "text"}}}}},
		}
	}
	messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Read all."}}}}
	for _, id := range []string{"a", "b", "c"} {
		messages = append(messages, step(id)...)
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	profile := render.For(wire.Anthropic)
	profile.BoundReasoning = false
	for summaries := 1; summaries <= 2; summaries++ {
		p := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: th.Version()}
		for n := range summaries {
			p.Add(plan.Summarization{Span: th.Range(1+2*n, 3+2*n), Summary: summary.Summary{Facts: []summary.Item{{Text: "Read."}}}})
		}
		out, _, err := render.Render(th, p, nil, &render.Options{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= summaries; n++ {
			if out.Messages[n].Role != thread.User {
				t.Errorf("%d summaries: message %d has the role %s", summaries, n, out.Messages[n].Role)
			}
		}
		if first := out.Messages[summaries+1]; first.Role != thread.Assistant {
			t.Errorf("%d summaries: the model's turn begins with the role %s", summaries, first.Role)
		}
	}
}
