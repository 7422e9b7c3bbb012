package anthropic

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// messageRequest is one request.
type messageRequest struct {
	body []byte
	// forced is the tool that stands for a structured answer, or empty.
	forced string
	schema *llm.Schema // nil for text
}

func (c *Client) newRequest(p *prompt.Prompt, o *llm.Options) (*messageRequest, error) {
	q := &messageRequest{schema: o.Schema}
	ask := *p
	ask.Model = c.model
	if o.MaxOutput > 0 {
		ask.MaxOutput = o.MaxOutput
		if hasThinking(p) {
			// What is thought counts as output, and its budget must be below the limit.
			ask.MaxOutput += int(gjson.Get(p.Source.Body, "thinking.budget_tokens").Int())
		}
	}
	if err := exchange.CheckOptions(provider, o); err != nil {
		return nil, err
	}
	if o.Schema != nil && !hasThinking(p) { // with thinking on the API lets no tool be forced
		q.forced = freeName(o.Schema.Name, p.Tools)
		ask.Tools = append(slices.Clone(p.Tools), prompt.Tool{
			Name: q.forced, Description: o.Schema.Description, Schema: o.Schema.JSON,
		})
	}
	body, err := codec.Codec{}.Encode(&ask)
	if err != nil {
		return nil, err
	}
	e := exchange.Editor{Body: body}
	switch {
	case q.forced != "":
		e.Set("tool_choice", `{"type":"tool","name":`+rawjson.Quote(q.forced)+`,"disable_parallel_tool_use":true}`)
	case q.schema != nil:
		e.Set("output_config.format", `{"type":"json_schema","schema":`+o.Schema.JSON+`}`)
	}
	if o.Temperature != nil && !hasThinking(p) && !c.noTemperature.Load() {
		e.Set("temperature", fmt.Sprint(*o.Temperature))
	}
	if gjson.GetBytes(e.Body, "stream").Exists() {
		e.Set("stream", "false")
	}
	q.body = e.Body
	return q, e.Err
}

// hasThinking reports whether the prompt's own request has thinking on.
func hasThinking(p *prompt.Prompt) bool {
	if p.Source == nil || p.Source.API != (codec.Codec{}).API() {
		return false
	}
	switch gjson.Get(p.Source.Body, "thinking.type").Str {
	case "enabled", "adaptive":
		return true
	}
	return false
}

// freeName returns a name that none of the tools has.
func freeName(name string, tools []prompt.Tool) string {
	base := name[:min(len(name), 60)]
	for n := 2; slices.ContainsFunc(tools, func(t prompt.Tool) bool { return t.Name == name }); n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// adjustAnswer turns the call of the tool that stands for a structured answer into the
// text that it is.
func (q *messageRequest) adjustAnswer(a *wire.Answer) error {
	if q.forced == "" {
		return nil
	}
	found := false
	for i, p := range a.Message.Parts {
		if call, ok := p.(thread.ToolCall); ok && call.Name == q.forced {
			a.Message.Parts[i] = thread.Text{Text: call.Arguments}
			found = true
		}
	}
	if found && a.Stop == wire.StopTool && len(a.Message.Calls()) == 0 {
		a.Stop = wire.StopEnd // nobody is to run the tool
	}
	return nil
}
