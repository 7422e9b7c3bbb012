package openai

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// chatElement is an element of the messages array, with its fields.
type chatElement struct {
	rawjson.Fields
	role             string
	reasoning, other []thread.Part // from fields beside content
}

// read reads the fields of an element into e, reusing the memory of e.Fields.
func (e *chatElement) read(v gjson.Result, i int) error {
	if !v.IsObject() {
		return chatFormat.Errorf(fmt.Sprintf("messages[%d]", i), "want an object")
	}
	e.Fields = rawjson.FieldsOf(v, e.Fields)
	e.role = e.Str("role")
	for _, f := range e.Fields {
		if f.Value.Type == gjson.Null {
			continue
		}
		switch f.Name {
		case "role", "content", "name", "tool_calls", chatLegacy, "tool_call_id", "cache_control":
		case "refusal", "audio":
			e.other = append(e.other, chatMember(f))
		default:
			switch {
			case chatReasons[f.Name]:
				e.reasoning = append(e.reasoning, chatReasoning(f))
			case e.role == "assistant" && !isEmpty(f.Value):
				e.other = append(e.other, thread.Opaque{Kind: f.Name, Source: chatMemberSource(f)})
			}
		}
	}
	switch e.role {
	case "system", "developer", "user", "assistant", "tool", "function":
		return nil
	}
	return chatFormat.Errorf(fmt.Sprintf("messages[%d].role", i), "%q is none of system, developer, user, assistant, tool, function", e.role)
}

func isEmpty(v gjson.Result) bool { return v.Raw == `""` || v.Raw == "[]" || v.Raw == "{}" }

// chatMember makes an opaque part of a message field. Its Kind is the field's name and its
// Raw an object with only that field, which unlike a content part has no type.
func chatMember(f rawjson.Field) thread.Opaque {
	text := f.Value.Str
	if f.Value.IsObject() {
		text = f.Value.Get("transcript").Str
	}
	return thread.Opaque{Kind: f.Name, Text: text, Source: chatMemberSource(f)}
}

func chatMemberSource(f rawjson.Field) thread.Source {
	from := chatSource(`{"` + f.Name + `":` + f.Value.Raw + "}")
	from.Beside = !chatCounted[f.Name]
	return from
}

// chatCounted are the fields that count for a message's id. What has been learned to be read since
// does not, so that stored conversations keep theirs.
var chatCounted = map[string]bool{"reasoning_content": true, "reasoning": true, "reasoning_details": true, "refusal": true, "audio": true}

func chatSource(raw string) thread.Source { return thread.Source{API: wire.Chat, Raw: raw} }

// chatReasons are the fields in which compatible servers return thinking, and expect it back:
// DeepSeek, Kimi, GLM, Qwen, vLLM; OpenRouter; LiteLLM; GitHub Copilot.
var chatReasons = scan.WordSet("reasoning_content reasoning reasoning_details thinking_blocks reasoning_text reasoning_opaque")

// chatReasoning reads such a field: a text, or a list of blocks with texts and signatures.
func chatReasoning(f rawjson.Field) thread.Part {
	v := f.Value
	r := thread.Reasoning{Text: v.Str, Source: chatMemberSource(f)}
	if f.Name == "reasoning_opaque" {
		r.Text, r.Signature = "", v.Str
	}
	if v.IsArray() {
		var texts []string
		for d := range rawjson.Items(v) {
			for _, name := range [...]string{"text", "summary", "thinking"} {
				if t := d.Get(name); t.Type == gjson.String {
					texts = append(texts, t.Str)
				}
			}
			r.Signature += d.Get("signature").Str + d.Get("data").Str
		}
		r.Text = strings.Join(texts, "\n")
	}
	return r
}

// chatReader turns elements into messages. It remembers the calls, because a result does
// not name its tool, and a legacy result not even its call.
type chatReader struct {
	names       map[string]string // call id → tool
	local       []thread.ToolCall // calls without id of the last assistant message, unanswered
	nextLocalID int               // local ids given out
}

func (d *chatReader) message(e *chatElement) thread.Message {
	m := thread.Message{Name: e.Str("name")}
	switch e.role {
	case "user":
		m.Role = thread.User
		m.Parts = chatContent(e.Get("content"))
	case "assistant":
		m.Role = thread.Assistant
		m.Parts = slices.Concat(e.reasoning, chatContent(e.Get("content")), e.other)
		d.calls(&m, e)
	case "tool", "function":
		m.Role = thread.Tool
		m.Name = ""
		m.Parts = []thread.Part{d.result(e)}
	default:
		m.Role = thread.System
		m.Parts = chatContent(e.Get("content"))
	}
	return m
}

func (d *chatReader) calls(m *thread.Message, e *chatElement) {
	d.local = d.local[:0]
	add := func(c thread.ToolCall) {
		if c.ID == "" {
			c.ID = thread.LocalID(d.nextLocalID)
			d.nextLocalID++
			d.local = append(d.local, c)
		}
		d.names[c.ID] = c.Name
		m.Parts = append(m.Parts, c)
	}
	for v := range rawjson.Items(e.Get("tool_calls")) {
		if v.IsObject() {
			add(chatCall(v))
		} else {
			m.Parts = append(m.Parts, thread.Opaque{Kind: "tool_calls", Source: chatSource(v.Raw)})
		}
	}
	if call := e.Get("function_call"); call.IsObject() {
		add(thread.ToolCall{Type: chatLegacy, Name: call.Get("name").Str, Arguments: chatText(call.Get("arguments")), Source: chatSource(call.Raw)})
	}
}

// chatLegacy is the type of calls of the deprecated functions interface.
const chatLegacy = "function_call"

// chatCall reads an entry of tool_calls. A call of unknown type is still a call, because a
// tool message answers it; its arguments are the object named after the type.
func chatCall(v gjson.Result) thread.ToolCall {
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 4))
	kind := f.Str("type")
	c := thread.ToolCall{ID: f.Str("id"), Signature: f.Get("extra_content").Get("google.thought_signature").Str, Source: chatSource(v.Raw)}
	body := f.Get(cmp.Or(kind, "function"))
	if !body.IsObject() {
		body = gjson.Result{}
	}
	c.Name = body.Get("name").Str
	switch kind {
	case "", "function":
		c.Arguments = chatText(body.Get("arguments"))
	case "custom":
		c.Type = kind
		c.Arguments = chatText(body.Get("input"))
	default:
		c.Type = kind
		c.Arguments = body.Raw
	}
	return c
}

// chatText returns a string's content, or the JSON of a value that should have
// been a string.
func chatText(v gjson.Result) string {
	if v.Type == gjson.String {
		return v.Str
	}
	return v.Raw
}

func (d *chatReader) result(e *chatElement) thread.ToolResult {
	r := thread.ToolResult{
		CallID: e.Str("tool_call_id"), Outcome: thread.Success,
		Content: chatContent(e.Get("content")), Source: chatSource(""),
	}
	if r.CallID == "" {
		r.CallID = d.answer(e)
	}
	r.Tool = cmp.Or(d.names[r.CallID], e.Str("name"))
	return r
}

// answer returns the id of the call that a result without an id belongs to: for function
// messages the latest open call of that name, for tool messages the first open call, since
// servers without ids answer in order.
func (d *chatReader) answer(e *chatElement) string {
	if e.role == "tool" {
		if len(d.local) == 0 {
			return ""
		}
		id := d.local[0].ID
		d.local = d.local[1:]
		return id
	}
	for i, c := range slices.Backward(d.local) {
		if c.Name == e.Str("name") {
			d.local = slices.Delete(d.local, i, i+1)
			return c.ID
		}
	}
	return ""
}

// chatContent reads a content field: a string, an array of parts, or null. Anything else
// becomes an opaque part.
func chatContent(v gjson.Result) []thread.Part {
	switch {
	case v.Type == gjson.Null: // absent as well
		return nil
	case v.Type == gjson.String:
		if v.Str == "" {
			return nil
		}
		return []thread.Part{thread.Text{Text: v.Str, Source: chatSource("")}}
	case v.IsArray():
		var parts []thread.Part
		for part := range rawjson.Items(v) {
			parts = append(parts, chatPart(part))
		}
		return parts
	}
	return []thread.Part{chatMember(rawjson.Field{Name: "content", Value: v})}
}

func chatPart(v gjson.Result) thread.Part {
	src := chatSource(v.Raw)
	if !v.IsObject() {
		return thread.Opaque{Text: v.Str, Source: src}
	}
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 4))
	kind, text := f.Str("type"), f.Str("text")
	src.Cache = codec.CacheTTL(f.Get("cache_control"))
	switch kind {
	case "text":
		if f.Get(kind).Type == gjson.String {
			return thread.Text{Text: text, Source: src}
		}
	case "image_url", "input_audio", "file":
		if m, ok := chatReadMedia(kind, f.Get(kind)); ok {
			m.Source = src
			return m
		}
	case "refusal":
		text = f.Str(kind)
	}
	return thread.Opaque{Kind: kind, Text: text, Source: src}
}
