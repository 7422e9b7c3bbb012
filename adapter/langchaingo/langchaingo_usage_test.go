package langchaingo

import (
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// Each provider tells what it counted under names of its own.
func TestUsage(t *testing.T) {
	for name, tt := range map[string]struct {
		told map[string]any
		want wire.Usage
	}{
		"OpenAI": {
			map[string]any{"PromptTokens": 1000, "PromptCachedTokens": 600, "CompletionTokens": 50, "ReasoningTokens": 20},
			wire.Usage{Known: true, Input: 1000, CacheRead: 600, Output: 50, Reasoning: 20},
		},
		"Anthropic": {
			map[string]any{"InputTokens": 100, "CacheReadInputTokens": 600, "CacheCreationInputTokens": 300, "OutputTokens": 50},
			wire.Usage{Known: true, Input: 1000, CacheRead: 600, CacheWrite: 300, Output: 50},
		},
		"Gemini": {
			map[string]any{"PromptTokens": int32(1000), "CachedTokens": int32(600), "CacheReadInputTokens": int32(600), "CompletionTokens": int32(50)},
			wire.Usage{Known: true, Input: 1000, CacheRead: 600, Output: 50},
		},
		"Ollama, which keeps a cache of its own": {
			map[string]any{"PromptTokens": 1000, "CachedTokens": 600, "CompletionTokens": 50},
			wire.Usage{Known: true, Input: 1000, Output: 50},
		},
	} {
		if got := usage(&llms.ContentResponse{Choices: []*llms.ContentChoice{{GenerationInfo: tt.told}}}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
