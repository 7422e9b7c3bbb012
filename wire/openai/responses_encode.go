package openai

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Encode writes the body of a request. A prompt that was read from a Responses body gives
// that body back, with model, instructions, input, tools and max_output_tokens replaced
// where they differ; what was removed there becomes null. Any other prompt is translated,
// and the request asks OpenAI not to store it. The error wraps wire.ErrFormat if
// Source.Body is no object.
func (Responses) Encode(p *prompt.Prompt) ([]byte, error) {
	d, spliced, err := codec.Base(p, wire.Responses, responsesDocument)
	if err != nil {
		return nil, err
	}
	instructions, rest := responsesInstructions(p.System)
	if old := d.Get("instructions"); instructions != old.Raw && (instructions != "" || old.Type == gjson.String) {
		d.Set("instructions", cmp.Or(instructions, "null"))
	}
	w := responsesWriter{spliced: spliced, items: responsesItems(d.Get("input")), tools: p.Tools}
	w.system(rest)
	w.write(p.Messages)
	if !spliced || !w.isUntouched(d.Get("input")) {
		d.SetArray("input", w.input())
	}
	if tools := responsesWriteTools(p.Tools); len(tools) > 0 || d.Get("tools").IsArray() {
		d.SetArray("tools", tools)
	}
	if p.MaxOutput != rawjson.Count(d.Get("max_output_tokens")) {
		value := "null"
		if p.MaxOutput > 0 {
			value = strconv.Itoa(p.MaxOutput)
		}
		d.Set("max_output_tokens", value)
	}
	if !spliced {
		d.Set("store", "false")
	}
	return d.Bytes(), nil
}

// responsesItems are the items of an input. A plain string is one item.
func responsesItems(input gjson.Result) (items []string) {
	if input.Type == gjson.String {
		return []string{input.Raw}
	}
	for item := range rawjson.Items(input) {
		items = append(items, item.Raw)
	}
	return items
}

// responsesInstructions returns the JSON value of the field instructions ("" for none) and
// the blocks that go into the input. Only leading blocks become instructions, since the
// field comes before everything else.
func responsesInstructions(system []prompt.System) (string, []prompt.System) {
	n := 0
	var texts []string
	for n < len(system) && system[n].Role == "instructions" {
		if system[n].Text != "" {
			texts = append(texts, system[n].Text)
		}
		n++
	}
	if n == 1 && isResponsesSource(system[0].Source) {
		return system[0].Raw, system[n:]
	}
	if len(texts) == 0 {
		return "", system[n:]
	}
	return rawjson.Quote(strings.Join(texts, "\n\n")), system[n:]
}

// isResponsesSource reports whether s holds JSON of this API.
func isResponsesSource(s thread.Source) bool { return s.API == wire.Responses && s.Raw != "" }

func responsesWriteTools(tools []prompt.Tool) (list []string) {
	for _, t := range tools {
		if isResponsesSource(t.Source) {
			list = append(list, t.Raw)
		} else if written := responsesTool(t); written != "" {
			list = append(list, written)
		}
	}
	return list
}

// responsesTool translates a tool of another API; "" for tools that the other provider runs
// or defines itself.
func responsesTool(t prompt.Tool) string {
	kind := gjson.Get(t.Raw, "type").Str
	named := func(kind string) *rawjson.Object {
		o := rawjson.NewTypedObject(kind).Str("name", fittedName(t.Name))
		if t.Description != "" {
			o.Str("description", t.Description)
		}
		return o
	}
	if kind == "custom" && t.Schema == "" {
		o := named(kind)
		if grammar := gjson.Get(t.Raw, "custom.format.grammar"); grammar.IsObject() { // nested in Chat Completions, flat here
			o.Raw("format", rawjson.NewTypedObject("grammar").Raw("syntax", cmp.Or(grammar.Get("syntax").Raw, "null")).
				Raw("definition", cmp.Or(grammar.Get("definition").Raw, "null")).String())
		}
		return o.String()
	}
	schema := t.Schema
	if schema == "" {
		if t.Raw != "" && t.Description == "" && kind != "function" {
			return ""
		}
		schema = chatNoParameters
	}
	return named("function").Raw("parameters", schema).Raw("strict", "false").String()
}
