// Package reader is an agent of Genkit that reads the report of adaptertest.
package reader

import (
	"context"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	palimpsestgenkit "github.com/palimpsest-ai/palimpsest/adapter/genkit"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Run has the agent do the task, with the adapter unless c is nil. It returns the
// history.
func Run(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script) ([]*ai.Message, error) {
	g := genkit.Init(ctx)
	model := genkit.DefineModel(g, "test/scripted", &ai.ModelOptions{Supports: &ai.ModelSupports{Multiturn: true, SystemRole: true, Tools: true}},
		func(_ context.Context, req *ai.ModelRequest, _ ai.ModelStreamCallback) (*ai.ModelResponse, error) {
			return answer(script, req)
		})
	readPart := genkit.DefineTool(g, adaptertest.ReadPart, adaptertest.ReadPartSays, func(_ *ai.ToolContext, in part) (string, error) {
		return adaptertest.Part(in.N), nil
	})
	options := []ai.GenerateOption{
		ai.WithModel(model), ai.WithSystem("You read reports."), ai.WithPrompt(adaptertest.Task), ai.WithTools(readPart), ai.WithMaxTurns(3 * adaptertest.Parts),
	}
	if c != nil {
		options = append(options, ai.WithUse(palimpsestgenkit.New(c, func(context.Context) string { return "report" }, o)))
	}
	resp, err := genkit.Generate(ctx, g, options...)
	if err != nil {
		return nil, err
	}
	return resp.History(), nil
}

// part is what the tool takes.
type part struct {
	N int `json:"n"`
}

func answer(script *adaptertest.Script, req *ai.ModelRequest) (*ai.ModelResponse, error) {
	messages, err := palimpsestgenkit.Codec{}.Decode(req.Messages)
	if err != nil {
		return nil, err
	}
	var tools []string
	for _, t := range req.Tools {
		tools = append(tools, t.Name)
	}
	said, counted, err := script.Answer(messages, tools)
	if err != nil {
		return nil, err
	}
	out, err := palimpsestgenkit.Codec{}.Encode([]thread.Message{said})
	if err != nil {
		return nil, err
	}
	return &ai.ModelResponse{
		Message: out[0], FinishReason: ai.FinishReasonStop, Request: req,
		Usage: &ai.GenerationUsage{InputTokens: counted.Input, OutputTokens: counted.Output},
	}, nil
}
