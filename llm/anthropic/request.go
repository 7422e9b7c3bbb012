package anthropic

import (
	"fmt"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	codec "github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// newRequest writes the body of a request. forced is the tool whose arguments are the
// structured answer; it is empty where none is forced.
func (c *Client) newRequest(p *prompt.Prompt, o *llm.Options) (body, forced string, err error) {
	thinks := hasThinking(p)
	ask := *p
	ask.Model = c.model
	if o.MaxOutput > 0 {
		ask.MaxOutput = o.MaxOutput
		if thinks {
			// Thinking counts as output, and its budget must be below the limit.
			ask.MaxOutput += int(gjson.Get(p.Source.Body, "thinking.budget_tokens").Int())
		}
	}
	if err := exchange.CheckOptions(provider, o); err != nil {
		return "", "", err
	}
	if o.Schema != nil && !thinks { // with thinking on, the API does not let a tool be forced
		forced = freeName(o.Schema.Name, p.Tools)
		ask.Tools = append(slices.Clone(p.Tools), prompt.Tool{
			Name: forced, Description: o.Schema.Description, Schema: o.Schema.JSON,
		})
	}
	encoded, err := codec.Codec{}.Encode(&ask)
	if err != nil {
		return "", "", err
	}
	body = string(encoded)
	switch {
	case forced != "":
		body = jsonedit.Set(body, "tool_choice", `{"type":"tool","name":`+rawjson.Quote(forced)+`,"disable_parallel_tool_use":true}`)
	case o.Schema != nil:
		body = jsonedit.Set(body, "output_config.format", `{"type":"json_schema","schema":`+o.Schema.JSON+`}`)
	}
	if o.Temperature != nil && !thinks && !c.noTemperature.Load() {
		body = jsonedit.Set(body, "temperature", fmt.Sprint(*o.Temperature))
	}
	if gjson.Get(body, "stream").Exists() {
		body = jsonedit.Set(body, "stream", "false")
	}
	return body, forced, nil
}

// hasThinking reports whether the request behind the prompt has thinking on.
func hasThinking(p *prompt.Prompt) bool {
	if p.Source == nil || p.Source.API != (codec.Codec{}).API() {
		return false
	}
	kind := gjson.Get(p.Source.Body, "thinking.type").Str
	return kind == "enabled" || kind == "adaptive"
}

func freeName(name string, tools []prompt.Tool) string {
	base := name[:min(len(name), 60)]
	for n := 2; slices.ContainsFunc(tools, func(t prompt.Tool) bool { return t.Name == name }); n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// textOfForced puts the arguments of the forced call into a text part in its place.
func textOfForced(forced string, a *wire.Answer) {
	found := false
	for i, p := range a.Message.Parts {
		if call, ok := p.(thread.ToolCall); ok && call.Name == forced {
			a.Message.Parts[i] = thread.Text{Text: call.Arguments}
			found = true
		}
	}
	if found && a.Stop == wire.StopTool && len(a.Message.Calls()) == 0 {
		a.Stop = wire.StopEnd // nobody has to run the tool
	}
}
