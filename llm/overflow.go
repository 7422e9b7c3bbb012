package llm

import (
	"slices"
	"strings"
)

// overflowCodes are error codes and types that name the overflow.
var overflowCodes = []string{
	"context_length_exceeded",             // OpenAI, Azure, Groq, DeepSeek
	"model_max_prompt_tokens_exceeded",    // GitHub Copilot
	"exceed_context_size_error",           // llama.cpp
	"request_too_large",                   // Anthropic, 413: bytes, but less text cures it
	"tokens_limit_reached",                // GitHub Models
	"model_context_window_exceeded",       // z.ai, Anthropic's stop reason
	"context_window_exceeded",             // gateways
	"contextwindowexceedederror",          // LiteLLM
	"prompt_too_long",                     // gateways
	"request_body_too_large",              // gateways
	"prompt_tokens_exceeded",              // gateways
	"max_input_tokens_exceeded",           // gateways
	"1261",                                // z.ai: Prompt exceeds max length
	"input_too_long", "input_is_too_long", // gateways in front of Bedrock
}

// overflowMessages are the words of providers for a request that does not fit, in lower case; a
// star stands for any text. They are matched only against the message of the error, never
// the whole body, because servers echo input.
var overflowMessages = []string{
	"prompt is too long",                               // Anthropic, Fireworks, Vertex
	"input length and `max_tokens` exceed",             // Anthropic: input plus output
	"long context beta is not yet available",           // Anthropic: fits below 200k
	"required for long context requests",               // Anthropic, disguised as 429
	"input is too long",                                // Bedrock
	"too many input tokens",                            // Bedrock
	"prompt contains*tokens*too large for model",       // Mistral
	"exceed*context window",                            // OpenAI Responses, gateways
	"input tokens exceed the configured limit",         // OpenAI: input limit below the window
	"maximum context length",                           // OpenAI Chat, vLLM, DeepSeek, OpenRouter, Mistral, SGLang
	"maximum prompt length is",                         // xAI
	"reduce the length of the messages",                // OpenAI, Groq
	"reduce your message size",                         // Groq, as a 413 on tokens per minute
	"request too large for",                            // OpenAI and Groq, disguised as 429: above the limit of a whole minute
	"invalid 'messages': array too long",               // OpenAI: more than 2,048 messages
	"invalid 'input': array too long",                  // OpenAI, of Responses
	"request body too large for",                       // GitHub Models
	"prompt token count*exceeds the limit",             // GitHub Copilot
	"input token count*exceeds the maximum",            // Gemini
	"token count*exceeds the maximum number of tokens", // Gemini, Vertex
	"exceeds the available context size",               // llama.cpp, also as 500
	"exceed context size",                              // llama.cpp
	"prompt is too big compared to kv size",            // llama.cpp, older
	"context shift is disabled",                        // llama.cpp
	"context size has been exceeded",                   // LM Studio, llama.cpp
	"greater than the context length",                  // LM Studio: tokens to keep
	"the model is loaded with context length",          // LM Studio
	"reached context length of",                        // LM Studio
	"context length exceeded",                          // LM Studio, gateways
	"context the overflows",                            // LM Studio (its own spelling)
	"exceeds the context length",                       // Ollama
	"exceeded max context length",                      // Ollama
	"longer than the maximum model length",             // vLLM
	"longer than the model's context length",           // SGLang
	"exceeds the model's maximum context length",       // SGLang
	"`inputs` must have less than",                     // TGI
	"`inputs` tokens + `max_new_tokens` must be",       // TGI, Together
	"context window exceeds limit",                     // MiniMax
	"exceeded model token limit",                       // Kimi
	"exceeds max length",                               // z.ai
	"range of input length should be",                  // Qwen (DashScope)
	"input length*exceeds the maximum length",          // Volcengine
	"tokens*exceed max message tokens",                 // Volcengine
	"number of tokens in the prompt cannot exceed",     // Cohere
	"context window exceeded",                          // gateways
	"context window limit",                             // gateways
	"too many tokens in the prompt",                    // gateways
	"token limit exceeded",                             // gateways
	"tokens exceeds the model limit",                   // gateways
	"payload too large",                                // reverse proxies, 413 passed on under another status
	"request entity too large",                         // nginx, likewise
}

// notOverflow are messages about the rate of tokens, which some of the above also match.
var notOverflow = []string{
	"too many tokens, please wait",          // Bedrock throttling
	"throttl",                               // Bedrock
	"exceed your organization's rate limit", // Anthropic
	"exceed your account's rate limit",      // Anthropic
	"exceed the rate limit",                 //
	"rate limit reached",                    // OpenAI, Groq
	"quota exceeded",                        // Gemini
	"exceeded your current quota",           // OpenAI, Gemini
	"tokens per day",                        // Groq: the day is used up
	"resource has been exhausted",           // Gemini
}

// tooLargeForever counts more than notOverflow: the request exceeds the limit of a whole
// minute, so waiting never helps.
var tooLargeForever = []string{
	"request too large for", "reduce your message size", "required for long context requests",
}

// isOverflowMessage reports whether the words of an error say that the request is too
// large.
func isOverflowMessage(f *failure) bool {
	if f.code == "string_above_max_length" && matches(f.message, "maximum length 10485760") {
		return true // OpenAI: one text of more than 10 MB; small limits are about names and ids
	}
	return f.has(overflowCodes) || matchesAny(f.message, tooLargeForever) || !matchesAny(f.message, notOverflow) && matchesAny(f.message, overflowMessages)
}

func matchesAny(s string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(s, p) })
}

// matches reports whether s holds the pieces of the pattern between the stars, in
// order.
func matches(s, pattern string) bool {
	for piece := range strings.SplitSeq(pattern, "*") {
		i := strings.Index(s, piece)
		if i < 0 {
			return false
		}
		s = s[i+len(piece):]
	}
	return true
}
