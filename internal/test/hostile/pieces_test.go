//go:build unix

package hostile_test

import (
	"context"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// brief answers every piece of a span with the same sentence.
type brief struct{}

func (brief) Model() string { return "brief" }

func (brief) Generate(context.Context, *prompt.Prompt, *llm.Options) (*llm.Reply, error) {
	const text = "The handler reads file_01.go."
	return &llm.Reply{Text: text, Stop: wire.StopEnd, Message: thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: text}}}}, nil
}

// TestPiecesAreLinear: a summary that a model makes of a span piece by piece takes a time that grows
// with the span: what its answers are checked against is read once, not for each piece.
func TestPiecesAreLinear(t *testing.T) {
	linear(t, 256<<10, 512<<10, func(n int) func() {
		var messages []thread.Message
		for size := 0; size < n; size += 8_000 {
			for _, role := range []thread.Role{thread.User, thread.Assistant} {
				messages = append(messages, thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: prose(4_000)}}})
			}
		}
		return func() {
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Timeline{Model: brief{}, MaxTokens: 20_000}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Profile: render.For(wire.Chat), Budget: 20_000, Messages: messages}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
