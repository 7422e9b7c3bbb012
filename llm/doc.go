// Package llm is the contract for asking a model: one request, one answer.
// Summarizers use it, and whatever else needs a model on the side. The clients
// are llm/anthropic and llm/openai (which also speaks to Ollama, vLLM,
// OpenRouter and Gemini's compatible endpoint); llm/llmtest has fakes and the
// tests that every implementation passes.
//
//	reply, err := g.Generate(ctx, &prompt.Prompt{
//		System:   []prompt.System{{Text: "You summarise."}},
//		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: log}}}},
//	}, &llm.Options{MaxOutput: 2000, Schema: schema})
//
// What a model says is an answer, also when it refuses or stops for length:
// look at Reply.Stop, or ask Reply.Err. What a provider or the network says
// instead of an answer is an *APIError, and errors.Is tells its kind
// (ErrOverflow, ErrRateLimited, …). Classify, the table behind it, is pure and
// serves the proxy as well.
package llm
