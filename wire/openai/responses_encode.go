package openai

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Encode writes the body of a request. A prompt that was read from a Responses
// body gives that body back with only what differs replaced: model,
// instructions, input, tools and max_output_tokens; what was taken away there
// becomes null. Any other prompt is translated; the request asks OpenAI not to
// store it. Source.Body is trusted to be JSON, as Decode left it; the error,
// possible only when it is no object, wraps wire.ErrFormat.
func (Responses) Encode(p *prompt.Prompt) ([]byte, error) {
	if p.Source == nil || p.Source.API != wire.Responses || p.Source.Body == "" {
		return responsesTranslate(p), nil
	}
	b, err := responsesParse(p.Source.Body)
	if err != nil {
		return nil, err
	}
	w := responsesWriter{body: b, tools: p.Tools}
	if b.input.IsArray() {
		w.spans = make([]responsesSpan, 0, p.Source.Elements+p.Source.System)
		b.input.ForEach(func(_, item gjson.Result) bool {
			w.spans = append(w.spans, responsesSpan{item.Index, item.Index + len(item.Raw)})
			return true
		})
	} else if b.input.Type == gjson.String {
		w.spans = []responsesSpan{{b.input.Index, b.input.Index + len(b.input.Raw)}}
	}

	e := responsesEdits{body: b}
	if p.Model != b.model.Str {
		e.set("model", b.model, rawjson.Quote(p.Model))
	}
	instructions, rest := responsesInstructions(p.System)
	if instructions != b.instructions.Raw && (instructions != "" || b.instructions.Type == gjson.String) {
		e.set("instructions", b.instructions, responsesOrNull(instructions))
	}
	w.system(rest)
	w.write(p.Messages)
	if !w.untouched() {
		e.set("input", b.input, w.input())
	}
	if !responsesSameTools(p.Tools, b.tools) {
		e.set("tools", b.tools, responsesWriteTools(p.Tools))
	}
	if p.MaxOutput != responsesInt(b.maxOutput) {
		value := ""
		if p.MaxOutput > 0 {
			value = strconv.Itoa(p.MaxOutput)
		}
		e.set("max_output_tokens", b.maxOutput, responsesOrNull(value))
	}
	return e.apply(), nil
}

// responsesTranslate writes a body from nothing.
func responsesTranslate(p *prompt.Prompt) []byte {
	w := responsesWriter{tools: p.Tools}
	instructions, rest := responsesInstructions(p.System)
	w.system(rest)
	w.write(p.Messages)

	var out bytes.Buffer
	out.WriteString(`{"model":`)
	out.WriteString(rawjson.Quote(p.Model))
	if instructions != "" {
		out.WriteString(`,"instructions":`)
		out.WriteString(instructions)
	}
	out.WriteString(`,"input":`)
	out.WriteString(w.input())
	if tools := responsesWriteTools(p.Tools); tools != "[]" {
		out.WriteString(`,"tools":`)
		out.WriteString(tools)
	}
	if p.MaxOutput > 0 {
		out.WriteString(`,"max_output_tokens":`)
		out.WriteString(strconv.Itoa(p.MaxOutput))
	}
	out.WriteString(`,"store":false}`)
	return out.Bytes()
}

// responsesInstructions returns the JSON value of the field instructions ("" for
// none) and the blocks that go into the input. Only blocks at the start become
// instructions, since the field stands before everything else.
func responsesInstructions(system []prompt.System) (string, []prompt.System) {
	n := 0
	var texts []string
	for n < len(system) && system[n].Role == "instructions" {
		if system[n].Text != "" {
			texts = append(texts, system[n].Text)
		}
		n++
	}
	if n == 1 && responsesOwn(system[0].Source) {
		return system[0].Raw, system[n:]
	}
	if len(texts) == 0 {
		return "", system[n:]
	}
	return rawjson.Quote(strings.Join(texts, "\n\n")), system[n:]
}

func responsesOrNull(value string) string {
	if value == "" {
		return "null"
	}
	return value
}

func responsesInt(v gjson.Result) int {
	if v.Type != gjson.Number {
		return 0
	}
	return int(v.Int())
}

// responsesOwn reports whether a part is sent as the item it came from.
func responsesOwn(s thread.Source) bool { return s.API == wire.Responses && s.Raw != "" }

// responsesEdits are replacements in a body.
type responsesEdits struct {
	body *responsesBody
	list []responsesEdit
}

type responsesEdit struct {
	responsesSpan
	text string
}

// set gives a field of the body a new value, or adds the field at its start.
func (e *responsesEdits) set(name string, old gjson.Result, value string) {
	if old.Exists() {
		e.list = append(e.list, responsesEdit{responsesSpan{old.Index, old.Index + len(old.Raw)}, value})
		return
	}
	field := `"` + name + `":` + value
	if !e.body.empty || len(e.list) > 0 {
		field += ","
	}
	// Fields added to an empty object stand before those added earlier.
	e.list = slices.Insert(e.list, 0, responsesEdit{responsesSpan{e.body.open, e.body.open}, field})
}

func (e *responsesEdits) apply() []byte {
	slices.SortStableFunc(e.list, func(a, b responsesEdit) int { return a.start - b.start })
	size := len(e.body.text)
	for _, edit := range e.list {
		size += len(edit.text)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, edit := range e.list {
		out = append(out, e.body.text[at:edit.start]...)
		out = append(out, edit.text...)
		at = edit.end
	}
	return append(out, e.body.text[at:]...)
}

// responsesSameTools reports whether the tools are those of the body.
func responsesSameTools(tools []prompt.Tool, in gjson.Result) bool {
	n, same := 0, true
	if in.IsArray() {
		in.ForEach(func(_, tool gjson.Result) bool {
			same = n < len(tools) && responsesOwn(tools[n].Source) && tools[n].Raw == tool.Raw
			n++
			return same
		})
	}
	return same && n == len(tools)
}

func responsesWriteTools(tools []prompt.Tool) string {
	var b strings.Builder
	b.WriteByte('[')
	for _, t := range tools {
		text := t.Raw
		if !responsesOwn(t.Source) {
			text = responsesTool(t)
		}
		if text == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(text)
	}
	b.WriteByte(']')
	return b.String()
}

// responsesTool translates a tool of another API; "" for tools that the other
// provider runs or defines itself, which mean nothing here.
func responsesTool(t prompt.Tool) string {
	kind := gjson.Get(t.Raw, "type").Str
	name := rawjson.Quote(responsesName(t.Name))
	description := ""
	if t.Description != "" {
		description = `,"description":` + rawjson.Quote(t.Description)
	}
	if kind == "custom" && t.Schema == "" {
		format := gjson.Get(t.Raw, "custom.format")
		suffix := ""
		if grammar := format.Get("grammar"); grammar.IsObject() { // nested in Chat Completions, flat here
			suffix = `,"format":{"type":"grammar","syntax":` + responsesOrNull(grammar.Get("syntax").Raw) +
				`,"definition":` + responsesOrNull(grammar.Get("definition").Raw) + `}`
		}
		return `{"type":"custom","name":` + name + description + suffix + `}`
	}
	schema := t.Schema
	if schema == "" {
		if t.Raw != "" && t.Description == "" && kind != "function" {
			return ""
		}
		schema = `{"type":"object","properties":{}}`
	}
	return `{"type":"function","name":` + name + description + `,"parameters":` + schema + `,"strict":false}`
}
