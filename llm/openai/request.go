package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// requestForm is how requests are put, as far as it was found out what the server takes.
type requestForm struct {
	schema        schemaMode
	oldMaxTokens  bool // max_tokens in place of max_completion_tokens
	noTemperature bool // temperature is refused
}

// schemaMode is how a JSON answer is asked for: what not every server takes comes first.
type schemaMode int

const (
	strictSchema schemaMode = iota // response_format json_schema; not every schema can be strict
	looseSchema
	jsonObject // response_format json_object; the schema stands in the system prompt
	instructed // the schema stands in the system prompt, and nothing else asks for it
)

func (c *Client) currentForm() requestForm {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.form
}

func (c *Client) requestBody(p *prompt.Prompt, o *llm.Options, w requestForm) ([]byte, error) {
	ask := *p
	ask.Model = c.model
	if o.MaxOutput > 0 {
		ask.MaxOutput = o.MaxOutput
	}
	if err := exchange.CheckOptions(c.provider, o); err != nil {
		return nil, err
	}
	if o.Schema != nil && w.schema > looseSchema {
		ask.System = append(slices.Clone(p.System), prompt.System{Role: "system", Text: instruction(o.Schema)})
	}
	body, err := c.api.codec.Encode(&ask)
	if err != nil {
		return nil, err
	}
	e := editor{exchange.Editor{Body: body}}
	if o.Temperature != nil && !w.noTemperature {
		e.Set("temperature", fmt.Sprint(*o.Temperature))
	}
	e.Remove("stream")
	e.Remove("stream_options")
	c.api.finish(&e, o, ask.MaxOutput, w)
	return e.Body, e.Err
}

// finishChat sets what only Chat Completions has.
func finishChat(e *editor, o *llm.Options, limit int, w requestForm) {
	if o.Schema != nil {
		e.setFormat("response_format", "json_schema", o.Schema, w.schema)
	}
	e.setLimit(limit, w.oldMaxTokens)
}

// finishResponses sets what only the Responses API has.
func finishResponses(e *editor, o *llm.Options, _ int, w requestForm) {
	if o.Schema != nil {
		e.setFormat("text.format", "", o.Schema, w.schema)
	}
	if !gjson.GetBytes(e.Body, "store").Exists() {
		e.Set("store", "false")
	}
}

// instruction tells the model of the schema where the server cannot. It holds
// the word JSON, without which json_object is refused.
func instruction(s *llm.Schema) string {
	text := "Answer with one JSON object that follows this JSON schema, and with nothing else:\n" + s.JSON
	if s.Description != "" {
		text += "\nThe object is: " + s.Description
	}
	return text
}

// editor changes members of a body.
type editor struct{ exchange.Editor }

// setFormat asks for a structured answer in the member at path. The schema stands
// in the member inner, or beside the type when inner is empty.
func (e *editor) setFormat(path, inner string, s *llm.Schema, how schemaMode) {
	switch how {
	case strictSchema, looseSchema:
		schema := `"name":` + rawjson.Quote(s.Name)
		if s.Description != "" {
			schema += `,"description":` + rawjson.Quote(s.Description)
		}
		schema += `,"schema":` + s.JSON
		if how == strictSchema {
			schema += `,"strict":true`
		}
		if inner != "" {
			schema = `"` + inner + `":{` + schema + "}"
		}
		e.Set(path, `{"type":"json_schema",`+schema+"}")
	case jsonObject:
		e.Set(path, `{"type":"json_object"}`)
	default:
		e.Remove(path)
	}
}

// setLimit names the limit on the output as the server knows it.
func (e *editor) setLimit(n int, old bool) {
	from, to := "max_tokens", "max_completion_tokens"
	if old {
		from, to = to, from
	}
	e.Remove(from)
	if n > 0 {
		e.Set(to, fmt.Sprint(n))
	}
}

// stepDown learns from a refusal. It reports whether the request can be put
// another way: each way is left only once, so the steps come to an end.
func (c *Client) stepDown(err error, w requestForm, o *llm.Options) bool {
	e, ok := errors.AsType[*llm.APIError](err)
	if !ok || e.Kind != llm.ErrInvalid && e.Kind != llm.ErrServer && e.Kind != llm.ErrNotFound {
		return false
	}
	said := strings.ToLower(e.Message)
	names := func(words ...string) bool {
		return slices.ContainsFunc(words, func(s string) bool { return strings.Contains(said, s) })
	}
	// Calls that run at the same time may find out the same.
	c.mu.Lock()
	defer c.mu.Unlock()
	switch now := &c.form; {
	case o.Schema != nil && w.schema < instructed &&
		names("response_format", "response format", "text.format", "json_schema", "json schema", "json_object", "json mode", "structured output", "guided"):
		now.schema = w.schema + 1
	case names("max_completion_tokens"):
		now.oldMaxTokens = !w.oldMaxTokens
	case o.Temperature != nil && !w.noTemperature && names("temperature"):
		now.noTemperature = true
	default:
		return false
	}
	return true
}
