package openai

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/prompt"
)

// requestForm is what was found out about the fields that the server accepts.
type requestForm struct {
	schema        schemaMode
	oldMaxTokens  bool // max_tokens in place of max_completion_tokens
	noTemperature bool // temperature is refused
}

// schemaMode is how a JSON answer is asked for, the most demanding way first.
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

func (c *Client) requestBody(p *prompt.Prompt, o *llm.Options, w requestForm) (string, error) {
	ask := *p
	ask.Model = c.model
	if o.MaxOutput > 0 {
		ask.MaxOutput = o.MaxOutput
	}
	if err := exchange.CheckOptions(c.provider, o); err != nil {
		return "", err
	}
	if o.Schema != nil && w.schema > looseSchema {
		ask.System = append(slices.Clone(p.System), prompt.System{Role: "system", Text: instruction(o.Schema)})
	}
	encoded, err := c.api.codec.Encode(&ask)
	if err != nil {
		return "", err
	}
	body := jsonedit.Delete(jsonedit.Delete(string(encoded), "stream"), "stream_options")
	if o.Temperature != nil && !w.noTemperature {
		body = jsonedit.Set(body, "temperature", fmt.Sprint(*o.Temperature))
	}
	return c.api.finish(body, o, ask.MaxOutput, w), nil
}

func finishChat(body string, o *llm.Options, limit int, w requestForm) string {
	body = setFormat(body, "response_format", "json_schema", o.Schema, w.schema)
	from, to := "max_tokens", "max_completion_tokens"
	if w.oldMaxTokens {
		from, to = to, from
	}
	body = jsonedit.Delete(body, from)
	if limit > 0 {
		body = jsonedit.Set(body, to, fmt.Sprint(limit))
	}
	return body
}

func finishResponses(body string, o *llm.Options, _ int, w requestForm) string {
	body = setFormat(body, "text.format", "", o.Schema, w.schema)
	if !gjson.Get(body, "store").Exists() {
		body = jsonedit.Set(body, "store", "false")
	}
	return body
}

// instruction is the system prompt that asks for the schema where the server has no
// field for it. It must hold the word JSON, or servers refuse json_object.
func instruction(s *llm.Schema) string {
	text := "Answer with one JSON object that follows this JSON schema, and with nothing else:\n" + s.JSON
	if s.Description != "" {
		text += "\nThe object is: " + s.Description
	}
	return text
}

// setFormat asks for a structured answer in the member at path, unless s is nil. The
// schema goes into the member inner, or beside the type when inner is empty.
func setFormat(body, path, inner string, s *llm.Schema, how schemaMode) string {
	if s == nil {
		return body
	}
	switch how {
	case jsonObject:
		return jsonedit.Set(body, path, `{"type":"json_object"}`)
	case instructed:
		return jsonedit.Delete(body, path)
	}
	format := new(rawjson.Object).Str("name", s.Name).NonEmpty("description", s.Description).Raw("schema", s.JSON)
	if how == strictSchema {
		format.Raw("strict", "true")
	}
	if inner != "" {
		return jsonedit.Set(body, path, rawjson.NewTypedObject("json_schema").Raw(inner, format.String()).String())
	}
	return jsonedit.Set(body, path, `{"type":"json_schema",`+format.String()[1:])
}

// stepDown learns from a refusal and reports whether the request can be put another
// way. Each way is given up only once, so the steps come to an end; renamed says that this
// call has tried the other name of the limit on the output.
func (c *Client) stepDown(err error, w requestForm, o *llm.Options, renamed *bool) bool {
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
	case !*renamed && names("max_completion_tokens"):
		now.oldMaxTokens, *renamed = !w.oldMaxTokens, true
	case o.Temperature != nil && !w.noTemperature && names("temperature"):
		now.noTemperature = true
	default:
		return false
	}
	return true
}
