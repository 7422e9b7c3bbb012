package openai

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Encode writes a request body.
//
// For a prompt that Decode read, only the messages, tools, functions, model and output limit
// that differ are written anew; the rest of the body stays byte for byte. A message with a
// Frame of this API is sent as Frame.Raw(), and a part, tool or system block with a
// Source.Raw of this API as that, so whoever changes one must clear the other. If no tool
// is left, tool_choice and the like are removed, because the provider refuses them alone.
//
// For any other prompt the body is model, messages, tools and max_completion_tokens (if
// MaxOutput is set), and:
//   - System blocks come first, with the role developer if they had it, else system.
//   - Texts of one message are joined with newlines into one string; a content array is
//     written only for media or parts that were read from this API.
//   - Reasoning and opaque parts of other APIs are left out, and so are assistant and
//     system messages with nothing left. A user message keeps its place with the content
//     "", which the provider accepts. An assistant message with calls and no text has the
//     content null.
//   - Media are sent in user messages; elsewhere, and if the API has no form for them, they
//     become a placeholder such as "[image: image/png, 5120 bytes]".
//   - A failed result is sent as its text: the API has no flag, and an added word would
//     look like the tool's own.
//   - Call ids that the API refuses (over 40 characters, odd characters) become a hash, for
//     call and result alike; tool names lose what ^[a-zA-Z0-9_-]{1,64}$ does not allow.
//     Nothing is renamed in messages that keep their bytes.
//   - Types in Gemini's schemas become lower case.
//   - Arguments that are no JSON are wrapped as {"input": …}, custom calls stay custom, and
//     calls read from the legacy function_call form keep it.
//
// Cache points have no effect: the provider caches by itself. Messages keep their order.
// The error wraps wire.ErrFormat if Source.Body is no chat request.
func (Chat) Encode(p *prompt.Prompt) ([]byte, error) {
	w := newChatWriter(p)
	d, _, err := codec.Base(p, wire.Chat, chatDocument)
	if err != nil {
		return nil, err
	}
	d.SetArray("messages", w.messages())
	w.setTools(d)
	if p.MaxOutput != chatMaxOutput(d) {
		name, limit := "max_completion_tokens", ""
		if rawjson.Count(d.Get(name)) == 0 && d.Get("max_tokens").Exists() {
			name = "max_tokens"
		}
		if p.MaxOutput > 0 {
			limit = strconv.Itoa(p.MaxOutput)
		}
		d.Set(name, limit)
	}
	return d.Bytes(), nil
}

// messages are the elements for system blocks and messages.
func (w *chatWriter) messages() []string {
	list := make([]string, 0, len(w.p.System)+len(w.p.Messages))
	for _, s := range w.p.System {
		switch {
		case isChatSource(s.Source):
			list = append(list, s.Raw)
		case s.Text != "":
			role := "system"
			if s.Role == "developer" {
				role = s.Role
			}
			list = append(list, new(rawjson.Object).Str("role", role).Str("content", s.Text).String())
		}
	}
	for i := range w.p.Messages {
		m := &w.p.Messages[i]
		if hasChatFrame(m) {
			list = append(list, m.Frame.Raw())
		} else if written := w.message(m); written != "" {
			list = append(list, written)
		}
	}
	return list
}

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
var chatGeminiType = lazyregexp.New(`"type"\s*:\s*"(STRING|NUMBER|INTEGER|BOOLEAN|ARRAY|OBJECT|NULL)"`)

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
	o := new(rawjson.Object).Str("name", w.toolName(t.Name)).NonEmpty("description", t.Description)
	if kind == "custom" {
		return rawjson.NewTypedObject(kind).Raw(kind, o.String()).String()
	}
	schema := t.Schema
	if t.API == wire.Gemini {
		schema = chatGeminiType().ReplaceAllStringFunc(schema, strings.ToLower)
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
