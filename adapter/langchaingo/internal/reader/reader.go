// Package reader is a program over LangChain Go that reads the report of adaptertest.
package reader

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/langchaingo"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Run does the task, with the adapter unless c is nil.
func Run(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script) error {
	var model llms.Model = scripted{script}
	tools := []llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{
		Name: adaptertest.ReadPart, Description: adaptertest.ReadPartSays, Parameters: json.RawMessage(adaptertest.ReadPartTakes),
	}}}
	var kept *langchaingo.Model
	if c != nil {
		kept = langchaingo.New(model, c, func(context.Context) string { return "report" }, o)
		model, tools = kept, append(tools, kept.Tools()...)
	}
	history := []llms.MessageContent{
		llms.TextParts(llms.ChatMessageTypeSystem, "You read reports."),
		llms.TextParts(llms.ChatMessageTypeHuman, adaptertest.Task),
	}
	for {
		resp, err := model.GenerateContent(ctx, history, llms.WithTools(tools))
		if err != nil {
			return err
		}
		said := resp.Choices[0]
		if len(said.ToolCalls) == 0 {
			return nil
		}
		answer := llms.TextParts(llms.ChatMessageTypeAI, said.Content)
		results := llms.MessageContent{Role: llms.ChatMessageTypeTool}
		for _, call := range said.ToolCalls {
			answer.Parts = append(answer.Parts, call)
			result, err := run(ctx, kept, call)
			if err != nil {
				return err
			}
			results.Parts = append(results.Parts, result)
		}
		history = append(history, answer, results)
	}
}

func run(ctx context.Context, kept *langchaingo.Model, call llms.ToolCall) (llms.ToolCallResponse, error) {
	if kept != nil {
		if answer, ok := kept.Answer(ctx, call); ok {
			return answer, nil
		}
	}
	var in struct{ N int }
	if err := json.Unmarshal([]byte(call.FunctionCall.Arguments), &in); err != nil {
		return llms.ToolCallResponse{}, fmt.Errorf("arguments of %s: %w", call.FunctionCall.Name, err)
	}
	return llms.ToolCallResponse{ToolCallID: call.ID, Name: call.FunctionCall.Name, Content: adaptertest.Part(in.N)}, nil
}

// scripted is the script as a model of LangChain.
type scripted struct{ script *adaptertest.Script }

// Call implements llms.Model.
func (s scripted) Call(ctx context.Context, text string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, s, text, options...)
}

// GenerateContent implements llms.Model.
func (s scripted) GenerateContent(_ context.Context, history []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	messages, err := langchaingo.Codec{}.Decode(history)
	if err != nil {
		return nil, err
	}
	var o llms.CallOptions
	for _, option := range options {
		option(&o)
	}
	var tools []string
	for _, t := range o.Tools {
		tools = append(tools, t.Function.Name)
	}
	said, counted, err := s.script.Answer(messages, tools)
	if err != nil {
		return nil, err
	}
	choice := &llms.ContentChoice{Content: said.Text(), GenerationInfo: map[string]any{"PromptTokens": counted.Input, "CompletionTokens": counted.Output}}
	out, err := langchaingo.Codec{}.Encode([]thread.Message{said})
	if err != nil {
		return nil, err
	}
	for _, p := range out[0].Parts {
		if call, ok := p.(llms.ToolCall); ok {
			choice.ToolCalls = append(choice.ToolCalls, call)
		}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{choice}}, nil
}
