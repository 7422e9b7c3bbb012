package openai

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// chatReadTools reads the entries of tools, then those of the legacy functions.
func chatReadTools(d *rawjson.Document) (tools []prompt.Tool) {
	for _, name := range []string{"tools", "functions"} {
		for v := range rawjson.Items(d.Get(name)) {
			tools = append(tools, chatTool(v))
		}
	}
	return tools
}

func chatTool(v gjson.Result) prompt.Tool {
	t := prompt.Tool{Source: chatSource(v.Raw)}
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
	t.Name = cmp.Or(body.Get("name").Str, kind)
	t.Description = body.Get("description").Str
	if p := body.Get("parameters"); p.IsObject() {
		t.Schema = p.Raw
	}
	t.Cache = codec.CacheTTL(v.Get("cache_control"))
	return t
}

// chatNoParameters is the schema of a function without arguments.
const chatNoParameters = `{"type":"object","properties":{}}`

// chatGeminiType finds the types of Gemini's schemas, which are JSON schemas except for
// their capitals. Inside a string the quotes would be escaped, so only members named type
// match.
var chatGeminiType = regexp.MustCompile(`"type"\s*:\s*"(STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|OBJECT|NULL)"`)

// tool writes a tool from its fields; "" for one that another provider runs itself.
func (w *chatWriter) tool(t *prompt.Tool, legacy bool) string {
	if isChatSource(t.Source) {
		return t.Raw
	}
	kind := ""
	if t.API != "" && t.API != wire.Chat && t.Schema == "" {
		kind = gjson.Get(t.Raw, "type").Str
		if kind != "" && kind != "function" && kind != "custom" || !gjson.Get(t.Raw, "name").Exists() {
			return ""
		}
	}
	o := new(rawjson.Object).Str("name", w.toolName(t.Name))
	if t.Description != "" {
		o.Str("description", t.Description)
	}
	if kind == "custom" {
		return rawjson.NewTypedObject(kind).Raw(kind, o.String()).String()
	}
	schema := t.Schema
	if t.API == wire.Gemini {
		schema = chatGeminiType.ReplaceAllStringFunc(schema, strings.ToLower)
	}
	if !rawjson.IsObject(schema) {
		schema = chatNoParameters
	}
	o.Raw("parameters", schema)
	if legacy {
		return o.String()
	}
	return rawjson.NewTypedObject("function").Raw("function", o.String()).String()
}

// setTools sets tools and legacy functions if they differ from those of the body. New ones
// go into the field that the body uses. If there are none, the members that choose among
// them are removed too.
func (w *chatWriter) setTools(d *rawjson.Document) {
	if slices.EqualFunc(chatReadTools(d), w.p.Tools, func(held, t prompt.Tool) bool { return t.API == wire.Chat && held.Raw == t.Raw }) {
		return
	}
	var tools, functions []string
	for i := range w.p.Tools {
		t := &w.p.Tools[i]
		legacy := d.Get("functions").Exists()
		if legacy && d.Get("tools").Exists() {
			v := gjson.Parse(t.Raw)
			legacy = t.API == wire.Chat && v.Get("name").Exists() && !v.Get("type").Exists()
		}
		switch written := w.tool(t, legacy); {
		case written == "":
		case legacy:
			functions = append(functions, written)
		default:
			tools = append(tools, written)
		}
	}
	set := func(list []string, name string, choices ...string) {
		if len(list) > 0 {
			d.SetArray(name, list)
			return
		}
		for _, gone := range append(choices, name) {
			d.Set(gone, "")
		}
	}
	set(tools, "tools", "tool_choice", "parallel_tool_calls")
	set(functions, "functions", "function_call")
}
