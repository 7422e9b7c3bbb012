package langchaingo_test

import (
	"context"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/langchaingo"
	"github.com/palimpsest-ai/palimpsest/adapter/langchaingo/internal/reader"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

func TestTask(t *testing.T) {
	adaptertest.TestTask(t, func(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, model *adaptertest.Script) error {
		return reader.Run(ctx, c, o, model)
	})
}

// What Anthropic counts apart is added up: a count of nearly the window compacts.
func TestUsageOfAnthropic(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	next := &counting{}
	model := langchaingo.New(next, c, func(context.Context) string { return "a" }, &adapter.Options{Window: 20_000, Output: 500})
	history := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, "read it")}
	for range 3 {
		history = append(history, llms.TextParts(llms.ChatMessageTypeAI, adaptertest.Part(2)), llms.TextParts(llms.ChatMessageTypeHuman, "go on"))
	}
	for range 2 {
		if _, err := model.GenerateContent(t.Context(), history); err != nil {
			t.Fatal(err)
		}
		history = append(history, llms.TextParts(llms.ChatMessageTypeAI, "well"), llms.TextParts(llms.ChatMessageTypeHuman, "go on"))
	}
	if next.got[0] != 7 || next.got[1] >= 9 {
		t.Errorf("the model was sent %v messages, want 7 and then less than 9", next.got)
	}
	if _, ok := model.Answer(t.Context(), llms.ToolCall{FunctionCall: &llms.FunctionCall{Name: "another"}}); ok {
		t.Error("it answers a tool that is not its own")
	}
	if text, err := model.Call(t.Context(), "hello"); err != nil || text != "well" {
		t.Errorf("Call: %q, %v", text, err)
	}
}

// counting is a model that counts as Anthropic does.
type counting struct{ got []int }

func (c *counting) GenerateContent(_ context.Context, history []llms.MessageContent, _ ...llms.CallOption) (*llms.ContentResponse, error) {
	c.got = append(c.got, len(history))
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{
		Content: "well", GenerationInfo: map[string]any{"InputTokens": 100, "CacheReadInputTokens": 18_000, "CacheCreationInputTokens": 1_500, "OutputTokens": 3},
	}}}, nil
}

func (c *counting) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }
