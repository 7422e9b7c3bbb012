package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	anthropicparam "github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openaiparam "github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	wireanthropic "github.com/palimpsest-ai/palimpsest/wire/anthropic"
	wireopenai "github.com/palimpsest-ai/palimpsest/wire/openai"
)

// maxOutput is the limit of an answer, in tokens.
const maxOutput = 1500

const instructions = "You are a release engineer. You do what you are asked, step by step."

// client is an API as its official SDK speaks it.
type client interface {
	// codec reads and writes the bodies.
	codec() wire.Codec
	// around is the request without messages, written with the SDK's types.
	around(tools []tool) any
	// ask sends a body and returns the answer.
	ask(ctx context.Context, body []byte, stream bool) (answered, error)
	// refusal is the status and body of an error that the provider sent.
	refusal(err error) (status int, body string)
}

// answered is the model's answer, as messages for the log, and its usage.
type answered struct {
	messages []thread.Message
	usage    wire.Usage
}

// newClient returns the client of an API at a server, which asks through hc.
func newClient(api, url string, hc *http.Client) client {
	if api == wire.Anthropic {
		return &messagesClient{anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"), anthropicoption.WithHTTPClient(hc))}
	}
	sdk := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey("key"), openaioption.WithHTTPClient(hc))
	if api == wire.Chat {
		return &chatClient{sdk}
	}
	return &responsesClient{sdk}
}

// schema is the schema of a tool's parameters.
func (t tool) schema() map[string]any {
	properties := map[string]any{}
	for _, p := range t.parameters {
		properties[p] = map[string]any{"type": "string"}
	}
	return map[string]any{"type": "object", "properties": properties, "required": t.parameters, "additionalProperties": false}
}

type messagesClient struct{ sdk anthropic.Client }

func (*messagesClient) codec() wire.Codec { return wireanthropic.Codec{} }

func (*messagesClient) around(tools []tool) any {
	p := anthropic.MessageNewParams{
		Model: "worker", MaxTokens: maxOutput, Messages: []anthropic.MessageParam{},
		System:   []anthropic.TextBlockParam{{Text: instructions, CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Thinking: anthropic.ThinkingConfigParamOfEnabled(1024),
	}
	for _, t := range tools {
		s := t.schema()
		u := anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: s["properties"], Required: t.parameters}, t.name)
		u.OfTool.Description = anthropic.String(t.description)
		p.Tools = append(p.Tools, u)
	}
	return p
}

func (c *messagesClient) ask(ctx context.Context, body []byte, stream bool) (answered, error) {
	m, err := c.message(ctx, anthropicparam.Override[anthropic.MessageNewParams](json.RawMessage(body)), stream)
	if err != nil {
		return answered{}, err
	}
	return readMessage(m)
}

// message asks with the SDK's own types.
func (c *messagesClient) message(ctx context.Context, params anthropic.MessageNewParams, stream bool) (*anthropic.Message, error) {
	if !stream {
		return c.sdk.Messages.New(ctx, params)
	}
	m := &anthropic.Message{}
	s := c.sdk.Messages.NewStreaming(ctx, params)
	defer s.Close()
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return nil, err
		}
	}
	return m, s.Err()
}

func readMessage(m *anthropic.Message) (answered, error) {
	raw, err := json.Marshal(m.ToParam())
	if err != nil {
		return answered{}, err
	}
	messages, err := wireanthropic.DecodeMessage(string(raw))
	return answered{messages, wire.Usage{
		Input:     int(m.Usage.InputTokens + m.Usage.CacheReadInputTokens + m.Usage.CacheCreationInputTokens),
		CacheRead: int(m.Usage.CacheReadInputTokens), CacheWrite: int(m.Usage.CacheCreationInputTokens), Output: int(m.Usage.OutputTokens), Known: true,
	}}, err
}

func (*messagesClient) refusal(err error) (int, string) {
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return e.StatusCode, e.RawJSON()
	}
	return 0, ""
}

type chatClient struct{ sdk openai.Client }

func (*chatClient) codec() wire.Codec { return wireopenai.Chat{} }

func (*chatClient) around(tools []tool) any {
	p := openai.ChatCompletionNewParams{
		Model: "worker", MaxCompletionTokens: openai.Int(maxOutput),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions)},
	}
	for _, t := range tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: openai.String(t.description), Parameters: t.schema(),
		}))
	}
	return p
}

func (c *chatClient) ask(ctx context.Context, body []byte, stream bool) (answered, error) {
	whole, err := c.completion(ctx, openaiparam.Override[openai.ChatCompletionNewParams](json.RawMessage(body)), stream)
	if err != nil {
		return answered{}, err
	}
	return readCompletion(whole)
}

// completion asks with the SDK's own types.
func (c *chatClient) completion(ctx context.Context, params openai.ChatCompletionNewParams, stream bool) (*openai.ChatCompletion, error) {
	if !stream {
		return c.sdk.Chat.Completions.New(ctx, params)
	}
	acc := openai.ChatCompletionAccumulator{}
	s := c.sdk.Chat.Completions.NewStreaming(ctx, params, openaioption.WithJSONSet("stream_options.include_usage", true))
	defer s.Close()
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			return nil, fmt.Errorf("the chunk does not follow: %s", s.Current().RawJSON())
		}
	}
	return &acc.ChatCompletion, s.Err()
}

func readCompletion(whole *openai.ChatCompletion) (answered, error) {
	if len(whole.Choices) != 1 {
		return answered{}, fmt.Errorf("%d choices", len(whole.Choices))
	}
	raw, err := json.Marshal(whole.Choices[0].Message.ToParam())
	if err != nil {
		return answered{}, err
	}
	messages, _, err := wireopenai.DecodeChatMessages("[" + string(raw) + "]")
	return answered{messages, wire.Usage{Input: int(whole.Usage.PromptTokens), Output: int(whole.Usage.CompletionTokens), Known: true}}, err
}

func (*chatClient) refusal(err error) (int, string) { return openaiRefusal(err) }

// openaiRefusal gives the body as it was sent: the SDK holds what is inside of
// its error member.
func openaiRefusal(err error) (int, string) {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode, `{"error":` + e.RawJSON() + `}`
	}
	return 0, ""
}

type responsesClient struct{ sdk openai.Client }

func (*responsesClient) codec() wire.Codec { return wireopenai.Responses{} }

func (*responsesClient) around(tools []tool) any {
	p := responses.ResponseNewParams{
		Model: "worker", MaxOutputTokens: openai.Int(maxOutput), Instructions: openai.String(instructions),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{}},
		Store: openai.Bool(false), Include: []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent},
	}
	for _, t := range tools {
		u := responses.ToolParamOfFunction(t.name, t.schema(), true)
		u.OfFunction.Description = openai.String(t.description)
		p.Tools = append(p.Tools, u)
	}
	return p
}

func (c *responsesClient) ask(ctx context.Context, body []byte, stream bool) (answered, error) {
	whole, err := c.response(ctx, openaiparam.Override[responses.ResponseNewParams](json.RawMessage(body)), stream)
	if err != nil {
		return answered{}, err
	}
	return readResponse(whole)
}

// response asks with the SDK's own types.
func (c *responsesClient) response(ctx context.Context, params responses.ResponseNewParams, stream bool) (*responses.Response, error) {
	if !stream {
		return c.sdk.Responses.New(ctx, params)
	}
	var whole *responses.Response
	s := c.sdk.Responses.NewStreaming(ctx, params)
	defer s.Close()
	for s.Next() {
		if e := s.Current(); e.Type == "response.completed" {
			whole = &e.Response
		}
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errors.New("the stream did not complete")
	}
	return whole, nil
}

func readResponse(whole *responses.Response) (answered, error) {
	var items []string
	for _, item := range whole.Output {
		items = append(items, item.RawJSON())
	}
	messages, _, err := wireopenai.DecodeItems("[" + strings.Join(items, ",") + "]")
	return answered{messages, wire.Usage{Input: int(whole.Usage.InputTokens), Output: int(whole.Usage.OutputTokens), Known: true}}, err
}

func (*responsesClient) refusal(err error) (int, string) { return openaiRefusal(err) }

// overflowed reports whether the provider refused a request as too long.
func overflowed(c client, err error) bool {
	status, body := c.refusal(err)
	return status != 0 && llm.IsOverflow(llm.Classify(c.codec().API(), status, []byte(body)))
}
