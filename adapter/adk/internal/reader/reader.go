// Package reader is an agent of ADK that reads the report of adaptertest.
package reader

import (
	"context"
	"errors"
	"iter"

	sdk "google.golang.org/genai"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/plugin"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/functiontool"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/adk"
	"github.com/palimpsest-ai/palimpsest/adapter/genai/genaitest"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
)

// Run has the agent do the task, with the adapter unless c is nil: as a plugin of the
// runner, or as callbacks of the agent.
func Run(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script, asPlugin bool) error {
	readPart, err := functiontool.New(functiontool.Config{Name: adaptertest.ReadPart, Description: adaptertest.ReadPartSays},
		func(_ agent.ToolContext, in part) (map[string]any, error) {
			return map[string]any{"result": adaptertest.Part(in.N)}, nil
		})
	if err != nil {
		return err
	}
	config := llmagent.Config{Name: "reader", Description: "reads reports", Instruction: "You read reports.", Model: scripted{script}, Tools: []tool.Tool{readPart}}
	var plugins runner.PluginConfig
	if c != nil {
		a := adk.New(c, &adk.Options{Options: *o, Again: scripted{script}})
		config.Toolsets = []tool.Toolset{a}
		if asPlugin {
			p, err := a.Plugin()
			if err != nil {
				return err
			}
			plugins.Plugins = []*plugin.Plugin{p}
		} else {
			config.BeforeModelCallbacks = []llmagent.BeforeModelCallback{a.BeforeModel}
			config.AfterModelCallbacks = []llmagent.AfterModelCallback{a.AfterModel}
			config.OnModelErrorCallbacks = []llmagent.OnModelErrorCallback{a.OnModelError}
		}
	}
	reads, err := llmagent.New(config)
	if err != nil {
		return err
	}
	r, err := runner.New(runner.Config{AppName: "reports", Agent: reads, SessionService: session.InMemoryService(), PluginConfig: plugins, AutoCreateSession: true})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, "user", "report", sdk.NewContentFromText(adaptertest.Task, sdk.RoleUser), agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if event.ErrorMessage != "" {
			return errors.New(event.ErrorMessage)
		}
	}
	return nil
}

// part is what the tool takes.
type part struct {
	N int `json:"n"`
}

// scripted is the script as a model of ADK, that refuses what Gemini's rules refuse.
type scripted struct{ script *adaptertest.Script }

// Name implements model.LLM.
func (s scripted) Name() string { return "scripted" }

// GenerateContent implements model.LLM.
func (s scripted) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(s.answer(req)) }
}

func (s scripted) answer(req *model.LLMRequest) (*model.LLMResponse, error) {
	said, usage, err := genaitest.Answer(s.script, req.Model, req.Config, req.Contents)
	if err != nil {
		return nil, err
	}
	return &model.LLMResponse{Content: said, TurnComplete: true, UsageMetadata: usage}, nil
}
