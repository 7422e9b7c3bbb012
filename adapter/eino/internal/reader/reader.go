// Package reader is an agent of eino that reads the report of adaptertest.
package reader

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/eino-contrib/jsonschema"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/adapter"
	"github.com/palimpsest-ai/palimpsest/adapter/adaptertest"
	"github.com/palimpsest-ai/palimpsest/adapter/eino"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Run has the agent do the task, with the adapter unless c is nil.
func Run(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script, stream bool) error {
	config := &adk.ChatModelAgentConfig{
		Name: "reader", Description: "reads reports", Instruction: "You read reports.",
		Model: scripted{script}, MaxIterations: 3 * adaptertest.Parts,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{readPart{}}}},
	}
	if c != nil {
		config.Handlers = []adk.ChatModelAgentMiddleware{eino.New(c, func(context.Context) string { return "report" }, o)}
	}
	agent, err := adk.NewChatModelAgent(ctx, config)
	if err != nil {
		return err
	}
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent, EnableStreaming: stream}).Query(ctx, adaptertest.Task)
	for {
		event, more := events.Next()
		if !more {
			return nil
		}
		if event.Err != nil {
			return event.Err
		}
		if event.Output == nil || event.Output.MessageOutput == nil {
			continue
		}
		if _, err := event.Output.MessageOutput.GetMessage(); err != nil {
			return err
		}
	}
}

// scripted is the script as a model of eino.
type scripted struct{ script *adaptertest.Script }

// Generate implements model.BaseChatModel.
func (s scripted) Generate(_ context.Context, input []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	messages, err := eino.Codec{}.Decode(input)
	if err != nil {
		return nil, err
	}
	var tools []string
	for _, t := range model.GetCommonOptions(nil, opts...).Tools {
		tools = append(tools, t.Name)
	}
	answer, counted, err := s.script.Answer(messages, tools)
	if err != nil {
		return nil, err
	}

	out, err := eino.Codec{}.Encode([]thread.Message{answer})
	if err != nil {
		return nil, err
	}
	out[0].ResponseMeta = &schema.ResponseMeta{Usage: &schema.TokenUsage{PromptTokens: counted.Input, CompletionTokens: counted.Output}}
	return out[0], nil
}

// Stream implements model.BaseChatModel.
func (s scripted) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	m, err := s.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Index = &i
	}
	words := &schema.Message{Role: m.Role, Content: m.Content}
	m.Content = ""
	return schema.StreamReaderFromArray([]*schema.Message{words, m}), nil
}

// readPart is the tool.
type readPart struct{}

// Info implements tool.BaseTool.
func (readPart) Info(context.Context) (*schema.ToolInfo, error) {
	takes := &jsonschema.Schema{}
	if err := json.Unmarshal([]byte(adaptertest.ReadPartTakes), takes); err != nil {
		return nil, err
	}
	return &schema.ToolInfo{Name: adaptertest.ReadPart, Desc: adaptertest.ReadPartSays, ParamsOneOf: schema.NewParamsOneOfByJSONSchema(takes)}, nil
}

// InvokableRun implements tool.InvokableTool.
func (readPart) InvokableRun(_ context.Context, arguments string, _ ...tool.Option) (string, error) {
	var in struct{ N int }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		return "", fmt.Errorf("arguments of read_part: %w", err)
	}
	return adaptertest.Part(in.N), nil
}
