// Package eino keeps agents of github.com/cloudwego/eino inside their context window.
//
//	mw := eino.New(compactor, func(context.Context) string { return "ticket-4711" }, &adapter.Options{Window: 200_000})
//	agent, err := adk.NewChatModelAgent(ctx, &adk.ChatModelAgentConfig{…, Handlers: []adk.ChatModelAgentMiddleware{mw}})
//
// NewAgentic is New for agents of models whose messages are made of blocks
// (schema.AgenticMessage).
//
// The agent's state keeps every message; what the model is sent is made for each call.
// So it stands before middlewares that summarize, or without them.
package eino

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Middleware has a session prepare each model call of an agent, and offers it the tools
// that reach what was removed. It may be used by several agents at once.
type Middleware = middleware[*schema.Message]

// AgenticMiddleware is Middleware for messages that are made of blocks.
type AgenticMiddleware = middleware[*schema.AgenticMessage]

type middleware[M adk.MessageType] struct {
	*adk.TypedBaseChatModelAgentMiddleware[M]

	sessions *adapter.Sessions[M]
	id       func(context.Context) string
}

var (
	_ adk.ChatModelAgentMiddleware                              = (*Middleware)(nil)
	_ adk.TypedChatModelAgentMiddleware[*schema.AgenticMessage] = (*AgenticMiddleware)(nil)
)

// New returns the middleware of a compactor, which needs Config.Recall for the tools.
// session names the conversation of a call; while it returns "" nothing is done. Agents
// that share a conversation's id must share its messages. A nil o is the zero Options.
func New(c *palimpsest.Compactor, session func(context.Context) string, o *adapter.Options) *Middleware {
	return &Middleware{sessions: adapter.New(c, Codec{}, o), id: session}
}

// NewAgentic is New for agents whose messages are made of blocks. The messages of the two
// kinds are not the same to a compactor: a conversation has one of them.
func NewAgentic(c *palimpsest.Compactor, session func(context.Context) string, o *adapter.Options) *AgenticMiddleware {
	return &AgenticMiddleware{sessions: adapter.New(c, AgenticCodec{}, o), id: session}
}

// BeforeAgent adds the tools.
func (w *middleware[M]) BeforeAgent(ctx context.Context, run *adk.ChatModelAgentContext) (context.Context, *adk.ChatModelAgentContext, error) {
	if w.id(ctx) == "" {
		return ctx, run, nil
	}
	out := *run
	out.Tools = append([]tool.BaseTool(nil), run.Tools...)
	for _, t := range w.sessions.Tools() {
		out.Tools = append(out.Tools, recallTool{t, w.answer})
	}
	return ctx, &out, nil
}

// WrapModel returns the model that is asked with what the session prepares.
func (w *middleware[M]) WrapModel(_ context.Context, m model.BaseModel[M], _ *adk.TypedModelContext[M]) (model.BaseModel[M], error) {
	return &prepared[M]{w, m}, nil
}

func (w *middleware[M]) answer(ctx context.Context, call thread.ToolCall) string {
	return w.sessions.Answer(ctx, w.id(ctx), call)
}

type prepared[M adk.MessageType] struct {
	w    *middleware[M]
	next model.BaseModel[M]
}

// Generate asks once more with a smaller request where the first is refused as too long.
func (p *prepared[M]) Generate(ctx context.Context, input []M, opts ...model.Option) (M, error) {
	s := p.w.sessions
	call := s.Prepare(ctx, p.w.id(ctx), base(opts), input)
	answer, err := p.next.Generate(ctx, call.Messages, opts...)
	if smaller, ok := s.Overflowed(ctx, call, err); ok {
		call = smaller
		answer, err = p.next.Generate(ctx, call.Messages, opts...)
	}
	if err == nil {
		s.Finish(ctx, call, usage(answer))
	}
	return answer, err
}

// Stream is Generate in pieces. A refusal that comes as a piece is passed on.
func (p *prepared[M]) Stream(ctx context.Context, input []M, opts ...model.Option) (*schema.StreamReader[M], error) {
	s := p.w.sessions
	call := s.Prepare(ctx, p.w.id(ctx), base(opts), input)
	stream, err := p.next.Stream(ctx, call.Messages, opts...)
	if smaller, ok := s.Overflowed(ctx, call, err); ok {
		call = smaller
		stream, err = p.next.Stream(ctx, call.Messages, opts...)
	}
	if err != nil {
		return nil, err
	}
	var once sync.Once
	return schema.StreamReaderWithConvert(stream, func(m M) (M, error) {
		if u := usage(m); u.Known {
			once.Do(func() { s.Finish(ctx, call, u) })
		}
		return m, nil
	}), nil
}

// base is what is known of the request around the messages.
func base(opts []model.Option) *prompt.Prompt {
	o := model.GetCommonOptions(nil, opts...)
	out := &prompt.Prompt{}
	if o.Model != nil {
		out.Model = *o.Model
	}
	if o.MaxTokens != nil {
		out.MaxOutput = *o.MaxTokens
	}
	for _, t := range o.Tools {
		info := prompt.Tool{Name: t.Name, Description: t.Desc}
		if takes, err := t.ToJSONSchema(); err == nil && takes != nil {
			if raw, err := json.Marshal(takes); err == nil {
				info.Schema = string(raw)
			}
		}
		out.Tools = append(out.Tools, info)
	}
	return out
}

func usage[M adk.MessageType](m M) wire.Usage {
	var u *schema.TokenUsage
	switch m := any(m).(type) {
	case *schema.Message:
		if m != nil && m.ResponseMeta != nil {
			u = m.ResponseMeta.Usage
		}
	case *schema.AgenticMessage:
		if m != nil && m.ResponseMeta != nil {
			u = m.ResponseMeta.TokenUsage
		}
	}
	if u == nil || u.PromptTokens == 0 {
		return wire.Usage{}
	}
	return wire.Usage{
		Input: u.PromptTokens, CacheRead: u.PromptTokenDetails.CachedTokens,
		Output: u.CompletionTokens, Reasoning: u.CompletionTokensDetails.ReasoningTokens, Known: true,
	}
}

// recallTool is one of the tools that reach what was removed.
type recallTool struct {
	tool   prompt.Tool
	answer func(context.Context, thread.ToolCall) string
}

var _ tool.InvokableTool = recallTool{}

// Info describes the tool.
func (t recallTool) Info(context.Context) (*schema.ToolInfo, error) {
	takes := &jsonschema.Schema{}
	if err := json.Unmarshal([]byte(t.tool.Schema), takes); err != nil {
		return nil, err
	}
	return &schema.ToolInfo{Name: t.tool.Name, Desc: t.tool.Description, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(takes)}, nil
}

// InvokableRun answers a call.
func (t recallTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.answer(ctx, thread.ToolCall{ID: compose.GetToolCallID(ctx), Name: t.tool.Name, Arguments: arguments}), nil
}
