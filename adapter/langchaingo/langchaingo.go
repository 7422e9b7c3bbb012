// Package langchaingo keeps programs that use github.com/tmc/langchaingo inside the
// context window of their model:
//
//	model := langchaingo.New(openaiModel, compactor, func(context.Context) string { return "ticket-4711" }, &adapter.Options{Window: 128_000})
//	resp, err := model.GenerateContent(ctx, history, llms.WithTools(append(tools, model.Tools()...)))
//
// The caller's history stays as it is; what the model is sent is made for each call.
package langchaingo

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tmc/langchaingo/llms"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Model is a model that is asked with what a session prepares. It may be used from
// several goroutines where the model may.
type Model struct {
	next     llms.Model
	sessions *adapter.Sessions[llms.MessageContent]
	id       func(context.Context) string
}

var _ llms.Model = (*Model)(nil)

// New wraps a model. The compactor needs Config.Recall for the tools. session names the
// conversation of a call; while it returns "", as for a question that belongs to none,
// nothing is done. A nil o is the zero Options.
func New(next llms.Model, c *palimpsest.Compactor, session func(context.Context) string, o *adapter.Options) *Model {
	return &Model{next: next, sessions: adapter.New(c, Codec{}, o), id: session}
}

// GenerateContent asks once more with a smaller request where the first is refused as
// too long.
func (m *Model) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	call := m.sessions.Prepare(ctx, m.id(ctx), base(options), messages)
	resp, err := m.next.GenerateContent(ctx, call.Messages, options...)
	if smaller, ok := m.sessions.Overflowed(ctx, call, err); ok {
		call = smaller
		resp, err = m.next.GenerateContent(ctx, call.Messages, options...)
	}
	if err == nil {
		m.sessions.Finish(ctx, call, usage(resp))
	}
	return resp, err
}

// Call asks with one text, which belongs to no conversation.
func (m *Model) Call(ctx context.Context, text string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m.next, text, options...)
}

// Tools are the tools that reach what was removed, for llms.WithTools.
func (m *Model) Tools() []llms.Tool {
	var out []llms.Tool
	for _, t := range m.sessions.Tools() {
		out = append(out, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: json.RawMessage(t.Schema),
		}})
	}
	return out
}

// Answer runs a call of one of Tools. ok is false for a call of another tool.
func (m *Model) Answer(ctx context.Context, call llms.ToolCall) (answer llms.ToolCallResponse, ok bool) {
	if call.FunctionCall == nil || !slices.ContainsFunc(m.sessions.Tools(), func(t prompt.Tool) bool { return t.Name == call.FunctionCall.Name }) {
		return answer, false
	}
	text := m.sessions.Answer(ctx, m.id(ctx), thread.ToolCall{ID: call.ID, Name: call.FunctionCall.Name, Arguments: call.FunctionCall.Arguments})
	return llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: text}, true
}

func base(options []llms.CallOption) *prompt.Prompt {
	var o llms.CallOptions
	for _, option := range options {
		option(&o)
	}
	out := &prompt.Prompt{Model: o.Model, MaxOutput: o.MaxTokens}
	for _, t := range o.Tools {
		if t.Function == nil {
			continue
		}
		takes, err := json.Marshal(t.Function.Parameters)
		if err != nil {
			takes = nil
		}
		out.Tools = append(out.Tools, prompt.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: string(takes)})
	}
	return out
}

// usage is what the provider counted: each has other names for it. Anthropic counts
// what is cached apart.
func usage(resp *llms.ContentResponse) wire.Usage {
	if resp == nil || len(resp.Choices) == 0 || resp.Choices[0] == nil {
		return wire.Usage{}
	}
	told := resp.Choices[0].GenerationInfo
	u := wire.Usage{
		Input: number(told["PromptTokens"]), CacheRead: number(told["PromptCachedTokens"]),
		Output: number(told["CompletionTokens"]), Reasoning: number(told["ReasoningTokens"]),
	}
	if u.Input == 0 {
		u.CacheRead, u.CacheWrite = number(told["CacheReadInputTokens"]), number(told["CacheCreationInputTokens"])
		if n := number(told["InputTokens"]); n > 0 {
			u.Input = n + u.CacheRead + u.CacheWrite
		}
		u.Output = number(told["OutputTokens"])
	}
	if u.CacheRead == 0 {
		u.CacheRead = number(told["CacheReadInputTokens"]) // Gemini, whose PromptTokens hold them
	}
	u.Known = u.Input > 0
	return u
}

func number(v any) int {
	switch v := v.(type) {
	case int:
		return v
	case int32:
		return int(v)
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}
