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
	"github.com/palimpsest-ai/palimpsest/adapter/eino"
	"github.com/palimpsest-ai/palimpsest/internal/test/adaptertest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Run has the agent do the task, with the adapter unless c is nil.
func Run(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script, stream bool) error {
	var handler adk.ChatModelAgentMiddleware
	if c != nil {
		handler = eino.New(c, report, o)
	}
	return run(ctx, scripted[*schema.Message]{script, eino.Codec{}, counted, pieces}, handler, stream)
}

// RunAgentic is Run for a model whose messages are made of blocks.
func RunAgentic(ctx context.Context, c *palimpsest.Compactor, o *adapter.Options, script *adaptertest.Script, stream bool) error {
	var handler adk.TypedChatModelAgentMiddleware[*schema.AgenticMessage]
	if c != nil {
		handler = eino.NewAgentic(c, report, o)
	}
	return run(ctx, scripted[*schema.AgenticMessage]{script, eino.AgenticCodec{}, countedBlocks, piecesOfBlocks}, handler, stream)
}

func report(context.Context) string { return "report" }

func run[M adk.MessageType](ctx context.Context, m model.BaseModel[M], handler adk.TypedChatModelAgentMiddleware[M], stream bool) error {
	config := &adk.TypedChatModelAgentConfig[M]{
		Name: "reader", Description: "reads reports", Instruction: "You read reports.",
		Model: m, MaxIterations: 3 * adaptertest.Parts,
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{readPart{}}}},
	}
	if handler != nil {
		config.Handlers = []adk.TypedChatModelAgentMiddleware[M]{handler}
	}
	agent, err := adk.NewTypedChatModelAgent(ctx, config)
	if err != nil {
		return err
	}
	events := adk.NewTypedRunner(adk.TypedRunnerConfig[M]{Agent: agent, EnableStreaming: stream}).Query(ctx, adaptertest.Task)
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
type scripted[M adk.MessageType] struct {
	script  *adaptertest.Script
	codec   adapter.Codec[M]
	counted func(M, *schema.TokenUsage)
	pieces  func(M) []M
}

// Generate implements model.BaseModel.
func (s scripted[M]) Generate(_ context.Context, input []M, opts ...model.Option) (M, error) {
	var none M
	messages, err := s.codec.Decode(input)
	if err != nil {
		return none, err
	}
	var tools []string
	for _, t := range model.GetCommonOptions(nil, opts...).Tools {
		tools = append(tools, t.Name)
	}
	answer, used, err := s.script.Answer(messages, tools)
	if err != nil {
		return none, err
	}
	out, err := s.codec.Encode([]thread.Message{answer})
	if err != nil {
		return none, err
	}
	s.counted(out[0], &schema.TokenUsage{PromptTokens: used.Input, CompletionTokens: used.Output})
	return out[0], nil
}

// Stream implements model.BaseModel.
func (s scripted[M]) Stream(ctx context.Context, input []M, opts ...model.Option) (*schema.StreamReader[M], error) {
	m, err := s.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray(s.pieces(m)), nil
}

func counted(m *schema.Message, used *schema.TokenUsage) {
	m.ResponseMeta = &schema.ResponseMeta{Usage: used}
}

func countedBlocks(m *schema.AgenticMessage, used *schema.TokenUsage) {
	m.ResponseMeta = &schema.AgenticResponseMeta{TokenUsage: used}
}

func pieces(m *schema.Message) []*schema.Message {
	for i := range m.ToolCalls {
		m.ToolCalls[i].Index = &i
	}
	words := &schema.Message{Role: m.Role, Content: m.Content}
	m.Content = ""
	return []*schema.Message{words, m}
}

func piecesOfBlocks(m *schema.AgenticMessage) (out []*schema.AgenticMessage) {
	for i, b := range m.ContentBlocks {
		b.StreamingMeta = &schema.StreamingMeta{Index: i}
		out = append(out, &schema.AgenticMessage{Role: m.Role, ContentBlocks: []*schema.ContentBlock{b}})
	}
	return append(out, &schema.AgenticMessage{Role: m.Role, ResponseMeta: m.ResponseMeta})
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
