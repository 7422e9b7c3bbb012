// Package llm is the contract for asking a model: one request, one answer. Summarizers and
// others that need a model on the side use it. The clients are llm/anthropic and llm/openai
// (which also speaks to Ollama, vLLM, OpenRouter and Gemini's compatible endpoint);
// internal/test/llmtest has fakes and the tests that every implementation passes.
//
//	reply, err := g.Generate(ctx, &prompt.Prompt{
//		System:   []prompt.System{{Text: "You summarise."}},
//		Messages: []thread.Message{thread.NewMessage(thread.User, log)},
//	}, &llm.Options{MaxOutput: 2000, Schema: schema})
//
// A model's answer is a Reply, even when it refuses or stops for length: see Reply.Stop and
// Reply.Err. A failure of the provider or the network is an *APIError, whose kind (such as
// ErrOverflow or ErrRateLimited) errors.Is finds. Classify, which decides the kind, is a
// pure function that the proxy uses too.
package llm
