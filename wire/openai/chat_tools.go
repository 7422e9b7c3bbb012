package openai

import (
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// readTools reads the entries of tools, then those of the legacy functions.
func (f *chatFields) readTools() []prompt.Tool {
	var tools []prompt.Tool
	add := func(_, v gjson.Result) bool {
		tools = append(tools, chatTool(v))
		return true
	}
	for _, list := range []gjson.Result{f.tools, f.functions} {
		if list.IsArray() {
			list.ForEach(add)
		}
	}
	return tools
}

func chatTool(v gjson.Result) prompt.Tool {
	t := prompt.Tool{Source: thread.Source{API: wire.Chat, Raw: v.Raw}}
	if !v.IsObject() {
		return t
	}
	kind := v.Get("type").Str
	body := v // a legacy function has no envelope
	if kind == "custom" {
		body = v.Get("custom")
	} else if f := v.Get("function"); f.IsObject() {
		body = f
	}
	t.Name = body.Get("name").Str
	if t.Name == "" {
		t.Name = kind
	}
	t.Description = body.Get("description").Str
	if p := body.Get("parameters"); p.IsObject() {
		t.Schema = p.Raw
	}
	if mark := v.Get("cache_control"); mark.IsObject() {
		if t.Cache = mark.Get("ttl").Str; t.Cache == "" {
			t.Cache = "5m"
		}
	}
	return t
}

// chatNoParameters is the schema of a function without arguments.
const chatNoParameters = `{"type":"object","properties":{}}`

// chatGeminiType finds the types of Gemini's schemas, which are JSON schemas but
// for the capitals. Inside a string the quotes would be escaped, so only members
// named type match.
var chatGeminiType = regexp.MustCompile(`"type"\s*:\s*"(STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|OBJECT|NULL)"`)

// appendTool writes a tool from its fields. It is false for a tool that
// another provider runs itself: there is nothing here that could.
func (w *chatWriter) appendTool(b []byte, t *prompt.Tool, legacy bool) ([]byte, bool) {
	foreign := t.API != "" && t.API != wire.Chat
	kind := ""
	if foreign && t.Schema == "" {
		kind = gjson.Get(t.Raw, "type").Str
		if kind != "" && kind != "function" && kind != "custom" || !gjson.Get(t.Raw, "name").Exists() {
			return b, false
		}
	}
	open, end := `{"type":"function","function":{`, "}}"
	switch {
	case legacy:
		open, end = "{", "}"
	case kind == "custom":
		open = `{"type":"custom","custom":{`
	}
	b = chatAppendField(append(b, open...), "name", w.toolName(t.Name))
	if t.Description != "" {
		b = chatAppendField(b, "description", t.Description)
	}
	if kind != "custom" {
		schema := t.Schema
		if t.API == wire.Gemini {
			schema = chatGeminiType.ReplaceAllStringFunc(schema, strings.ToLower)
		}
		if !rawjson.Valid(schema) || !gjson.Parse(schema).IsObject() {
			schema = chatNoParameters
		}
		b = append(b, `,"parameters":`...)
		b = append(b, schema...)
	}
	return append(b, end...), true
}

// appendTools writes an array of tools, keeping the JSON of those that were
// read from this API and the white space of old, the array as it was.
func (w *chatWriter) appendTools(b []byte, tools []prompt.Tool, old string, legacy bool) []byte {
	j := chatJoiner{old: chatSplit(old), b: b}
	j.open()
	for i := range tools {
		t := &tools[i]
		if t.API == wire.Chat && t.Raw != "" {
			j.next(j.old.find(i, t.Raw))
			j.b = append(j.b, t.Raw...)
			continue
		}
		before := j
		j.next(-1)
		var ok bool
		if j.b, ok = w.appendTool(j.b, t, legacy); !ok {
			j = before
		}
	}
	j.close()
	return j.b
}

// splitTools says which tools go to the tools field and which to the legacy
// functions field of a body. New tools follow the field that the body uses.
func (f *chatFields) splitTools(all []prompt.Tool) (tools, functions []prompt.Tool) {
	switch {
	case !f.functions.Exists():
		return all, nil
	case !f.tools.Exists():
		return nil, all
	}
	for _, t := range all {
		if v := gjson.Parse(t.Raw); t.API == wire.Chat && v.Get("name").Exists() && !v.Get("type").Exists() {
			functions = append(functions, t)
		} else {
			tools = append(tools, t)
		}
	}
	return tools, functions
}

// chatSameTools reports whether the tools are the entries that the body holds.
func (f *chatFields) sameTools(tools []prompt.Tool) bool {
	held := f.readTools()
	if len(held) != len(tools) {
		return false
	}
	for i := range tools {
		if tools[i].API != wire.Chat || tools[i].Raw != held[i].Raw {
			return false
		}
	}
	return true
}
