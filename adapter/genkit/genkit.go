// Package genkit keeps agents of github.com/firebase/genkit/go inside their context
// window:
//
//	mw := genkit.New(compactor, func(context.Context) string { return "ticket-4711" }, &adapter.Options{Window: 200_000})
//	resp, err := genkit.Generate(ctx, g, ai.WithMessages(history...), ai.WithTools(…), ai.WithUse(mw))
//
// The history of the answer holds every message; what the model is sent is made for
// each call.
package genkit

import (
	"context"
	"encoding/json"

	"github.com/firebase/genkit/go/ai"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Middleware has a session prepare each model call, and offers the model the tools that
// reach what was removed. It may be used by several calls of Generate at once.
type Middleware struct {
	sessions *adapter.Sessions[*ai.Message]
	id       func(context.Context) string
}

var _ ai.Middleware = (*Middleware)(nil)

// New returns the middleware of a compactor, which needs Config.Recall for the tools.
// session names the conversation of a call; while it returns "" nothing is done. A nil
// o is the zero Options.
func New(c *palimpsest.Compactor, session func(context.Context) string, o *adapter.Options) *Middleware {
	return &Middleware{sessions: adapter.New(c, Codec{}, o), id: session}
}

// Name implements ai.Middleware.
func (m *Middleware) Name() string { return "palimpsest" }

// New implements ai.Middleware. For a call without a conversation there are no hooks.
func (m *Middleware) New(ctx context.Context) (*ai.Hooks, error) {
	if m.id(ctx) == "" {
		return &ai.Hooks{}, nil
	}
	hooks := &ai.Hooks{WrapModel: m.model}
	for _, t := range m.sessions.Tools() {
		var takes map[string]any
		if err := json.Unmarshal([]byte(t.Schema), &takes); err != nil {
			return nil, err
		}
		hooks.Tools = append(hooks.Tools, ai.NewTool(t.Name, t.Description, func(ctx *ai.ToolContext, in any) (string, error) {
			arguments, err := json.Marshal(in)
			if err != nil {
				return "", err
			}
			return m.sessions.Answer(ctx, m.id(ctx), thread.ToolCall{Name: t.Name, Arguments: string(arguments)}), nil
		}, ai.WithInputSchema(takes)))
	}
	return hooks, nil
}

// model asks once more with a smaller request where the first is refused as too long.
func (m *Middleware) model(ctx context.Context, p *ai.ModelParams, next ai.ModelNext) (*ai.ModelResponse, error) {
	call := m.sessions.Prepare(ctx, m.id(ctx), base(p.Request), p.Request.Messages)
	resp, err := next(ctx, with(p, call))
	if smaller, ok := m.sessions.Overflowed(ctx, call, err); ok {
		call = smaller
		resp, err = next(ctx, with(p, call))
	}
	if err == nil && resp != nil {
		m.sessions.Finish(ctx, call, usage(resp.Usage))
		resp.Request = p.Request // its messages are the history
	}
	return resp, err
}

func with(p *ai.ModelParams, call adapter.Call[*ai.Message]) *ai.ModelParams {
	request := *p.Request
	request.Messages = call.Messages
	return &ai.ModelParams{Request: &request, Callback: p.Callback}
}

func base(r *ai.ModelRequest) *prompt.Prompt {
	out := &prompt.Prompt{}
	for _, t := range r.Tools {
		takes, err := json.Marshal(t.InputSchema)
		if err != nil {
			takes = nil
		}
		out.Tools = append(out.Tools, prompt.Tool{Name: t.Name, Description: t.Description, Schema: string(takes)})
	}
	return out
}

func usage(u *ai.GenerationUsage) wire.Usage {
	if u == nil || u.InputTokens == 0 {
		return wire.Usage{}
	}
	return wire.Usage{Input: u.InputTokens, CacheRead: u.CachedContentTokens, Output: u.OutputTokens, Known: true}
}
