package llmtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func ask(text string) *prompt.Prompt {
	return &prompt.Prompt{Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: text}}}}}
}

func TestEcho(t *testing.T) {
	g := llmtest.Echo{}
	r, err := g.Generate(t.Context(), ask("a \"b\""), nil)
	if err != nil || r.Text != `a "b"` || r.Stop != wire.StopEnd || r.Message.Text() != r.Text || r.Model != g.Model() || !r.Usage.Known {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = g.Generate(t.Context(), ask(`a "b"`), &llm.Options{Schema: &llm.Schema{Name: "x", JSON: `{"type":"object"}`}})
	if err != nil || r.JSON != `{"echo": "a \"b\""}` {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = g.Generate(t.Context(), &prompt.Prompt{}, nil); err != nil || r.Text != "" {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Generate(ctx, ask("a"), nil); !errors.Is(err, context.Canceled) || !errors.Is(err, llm.ErrCanceled) {
		t.Errorf("%v", err)
	}
}

func TestScript(t *testing.T) {
	s := llmtest.Script(
		llmtest.Say("one"),
		llmtest.Fail(llm.ErrOverflow),
		llmtest.Turn{Reply: llm.Reply{Text: `so {"a":1}`, Stop: wire.StopEnd}},
		llmtest.Turn{Reply: llm.Reply{Text: `{"a":1}`, Stop: wire.StopLength}},
	)
	schema := &llm.Options{Schema: &llm.Schema{Name: "x", JSON: `{"type":"object"}`}, MaxOutput: 5}
	if r, err := s.Generate(t.Context(), ask("first"), nil); err != nil || r.Text != "one" || r.Message.Role != thread.Assistant {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := s.Generate(t.Context(), ask("second"), nil); !llm.IsOverflow(err) {
		t.Errorf("%v", err)
	}
	if r, err := s.Generate(t.Context(), ask("third"), schema); err != nil || r.JSON != `{"a":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := s.Generate(t.Context(), ask("fourth"), schema); err != nil || r.JSON != "" || !errors.Is(r.Err(), llm.ErrTruncated) {
		t.Errorf("%+v, %v", r, err)
	}
	if s.Remaining() != 0 {
		t.Errorf("%d turns left", s.Remaining())
	}
	if _, err := s.Generate(t.Context(), ask("fifth"), nil); err == nil {
		t.Error("an answer beyond the script")
	}
	asked := s.Asked()
	if len(asked) != 5 || asked[2].Prompt.Messages[0].Text() != "third" || asked[2].Options.MaxOutput != 5 {
		t.Errorf("%+v", asked)
	}
}
