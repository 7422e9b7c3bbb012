// Package adk keeps agents of google.golang.org/adk (version 1) inside their context
// window. For one agent:
//
//	a := adk.New(compactor, &adk.Options{Options: adapter.Options{Window: 1_000_000}})
//	agent, err := llmagent.New(llmagent.Config{…,
//		BeforeModelCallbacks:  []llmagent.BeforeModelCallback{a.BeforeModel},
//		AfterModelCallbacks:   []llmagent.AfterModelCallback{a.AfterModel},
//		OnModelErrorCallbacks: []llmagent.OnModelErrorCallback{a.OnModelError},
//		Toolsets:              []tool.Toolset{a},
//	})
//
// Plugin does it for all agents of a runner, but for the tools. The events of ADK's
// session stay whole.
package adk

import (
	"encoding/json"
	"strings"

	sdk "google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/plugin"
	"google.golang.org/adk/tool"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/genai"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Options tune an Adapter. The zero value knows no window; its profile is Gemini's.
type Options struct {
	adapter.Options
	// Again is asked with a smaller request where the model has refused one as too
	// long; it is the agent's own model. Nil: the refusal is the agent's, and the next
	// request is smaller.
	Again model.LLM
}

// Adapter has a session prepare each model call. A session of the compactor is what one
// agent sees of a session of ADK. It may be used by several agents at once.
type Adapter struct {
	sessions *adapter.Sessions[*sdk.Content]
	again    model.LLM
}

var _ tool.Toolset = (*Adapter)(nil)

// New returns the adapter of a compactor, which needs Config.Recall for the tools. A
// nil o is the zero Options.
func New(c *palimpsest.Compactor, o *Options) *Adapter {
	if o == nil {
		o = &Options{}
	}
	with := o.Options
	if with.Profile == (render.Profile{}) {
		with.Profile = render.For(wire.Gemini)
	}
	return &Adapter{sessions: adapter.New(c, genai.Codec{}, &with), again: o.Again}
}

// Plugin returns the three callbacks as a plugin.
func (a *Adapter) Plugin() (*plugin.Plugin, error) {
	return plugin.New(plugin.Config{
		Name: a.Name(), BeforeModelCallback: a.BeforeModel, AfterModelCallback: a.AfterModel, OnModelErrorCallback: a.OnModelError,
	})
}

// session names what one agent sees of a session. No two have the same name, whatever
// stands in theirs: the log of one user must not be that of another.
func session(ctx agent.ReadonlyContext) string {
	names := []string{ctx.AppName(), ctx.UserID(), ctx.SessionID(), ctx.Branch(), ctx.AgentName()}
	for i := range names {
		names[i] = escaped.Replace(names[i])
	}
	return strings.Join(names, "/")
}

var escaped = strings.NewReplacer("%", "%25", "/", "%2F")

// BeforeModel is a llmagent.BeforeModelCallback: it puts the contents that the session
// prepares into the request.
func (a *Adapter) BeforeModel(ctx agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
	write(req, a.sessions.Prepare(ctx, session(ctx), genai.Base(req.Model, req.Config), req.Contents))
	return nil, nil
}

func write(req *model.LLMRequest, call adapter.Call[*sdk.Content]) {
	req.Contents, req.Config = call.Messages, genai.WithSystem(req.Config, call.System)
}

// AfterModel is a llmagent.AfterModelCallback: it tells what the provider counted.
func (a *Adapter) AfterModel(ctx agent.CallbackContext, resp *model.LLMResponse, err error) (*model.LLMResponse, error) {
	if err != nil || resp == nil || resp.Partial {
		return nil, nil
	}
	if call, ok := a.sessions.Last(session(ctx)); ok {
		a.sessions.Finish(ctx, call, genai.Usage(resp.UsageMetadata))
	}
	return nil, nil
}

// OnModelError is a llmagent.OnModelErrorCallback: where a request was too long, it
// compacts harder and asks Options.Again.
func (a *Adapter) OnModelError(ctx agent.CallbackContext, req *model.LLMRequest, refusal error) (*model.LLMResponse, error) {
	call, ok := a.sessions.Last(session(ctx))
	if !ok {
		return nil, nil
	}
	smaller, ok := a.sessions.Overflowed(ctx, call, refusal)
	if !ok || a.again == nil {
		return nil, nil
	}
	write(req, smaller)
	for resp, err := range a.again.GenerateContent(ctx, req, false) {
		return resp, err
	}
	return nil, nil
}

// Name is that of the plugin and of the toolset.
func (a *Adapter) Name() string { return "palimpsest" }

// Tools returns the tools that reach what was removed.
func (a *Adapter) Tools(agent.ReadonlyContext) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, t := range a.sessions.Tools() {
		out = append(out, recallTool{a, t})
	}
	return out, nil
}

// recallTool is one of the tools, as ADK calls them.
type recallTool struct {
	a    *Adapter
	tool prompt.Tool
}

// Name is the name for the model.
func (t recallTool) Name() string { return t.tool.Name }

// Description is for the model.
func (t recallTool) Description() string { return t.tool.Description }

// IsLongRunning is false.
func (t recallTool) IsLongRunning() bool { return false }

// Declaration describes the tool to the model.
func (t recallTool) Declaration() *sdk.FunctionDeclaration { return genai.Declaration(t.tool) }

// ProcessRequest puts the declaration into a request.
func (t recallTool) ProcessRequest(_ agent.ToolContext, req *model.LLMRequest) error {
	if req.Tools == nil {
		req.Tools = map[string]any{}
	}
	if _, there := req.Tools[t.Name()]; there {
		return nil // the agent's own
	}
	req.Tools[t.Name()] = t
	if req.Config == nil {
		req.Config = &sdk.GenerateContentConfig{}
	}
	req.Config.Tools = genai.WithTool(req.Config.Tools, t.tool)
	return nil
}

// Run answers a call.
func (t recallTool) Run(ctx agent.ToolContext, args any) (map[string]any, error) {
	arguments, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	call := thread.ToolCall{ID: ctx.FunctionCallID(), Name: t.Name(), Arguments: string(arguments)}
	return map[string]any{"result": t.a.sessions.Answer(ctx, session(ctx), call)}, nil
}
