package openai

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chatElement is one element of the messages array, its fields found in one
// pass.
type chatElement struct {
	role, name, answers          string
	content, calls, functionCall gjson.Result
	reasoning, other             []thread.Part // from fields beside content
}

func (e *chatElement) read(v gjson.Result, i int) error {
	if !v.IsObject() {
		return chatError(chatPath(i), "not an object")
	}
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "role":
			e.role = v.Str
		case "name":
			e.name = v.Str
		case "tool_call_id":
			e.answers = v.Str
		case "content":
			e.content = v
		case "tool_calls":
			e.calls = v
		case "function_call":
			e.functionCall = v
		case "reasoning_content", "reasoning", "reasoning_details":
			if v.Type != gjson.Null {
				e.reasoning = append(e.reasoning, chatReasoning(key, v))
			}
		case "refusal", "audio":
			if v.Type != gjson.Null {
				e.other = append(e.other, chatMember(key, v))
			}
		}
		return true
	})
	switch e.role {
	case "system", "developer", "user", "assistant", "tool", "function":
		return nil
	}
	return chatError(chatPath(i)+".role", "%q is none of system, developer, user, assistant, tool, function", e.role)
}

func (e *chatElement) isSystem() bool { return e.role == "system" || e.role == "developer" }

// text joins the text of the content, for system blocks.
func (e *chatElement) text() string {
	m := thread.Message{Parts: chatContent(e.content)}
	return m.Text()
}

// cache returns the last cache mark on a part of the content.
func (e *chatElement) cache() (ttl string) {
	for _, p := range chatContent(e.content) {
		if t := p.From().Cache; t != "" {
			ttl = t
		}
	}
	return ttl
}

// chatMember makes the opaque part of a message field. Its kind is the field's
// name and its Raw an object with only that field, so that it can be told from
// a content part, which has a type.
func chatMember(key, v gjson.Result) thread.Opaque {
	text := v.Str
	if v.IsObject() {
		text = v.Get("transcript").Str
	}
	return thread.Opaque{Kind: key.Str, Text: text, Source: chatMemberSource(key, v)}
}

func chatMemberSource(key, v gjson.Result) thread.Source {
	return thread.Source{API: wire.Chat, Raw: `{"` + key.Str + `":` + v.Raw + "}"}
}

// chatReasoning reads the thinking that compatible servers return and want
// back: reasoning_content (DeepSeek, Qwen, vLLM), reasoning and
// reasoning_details (OpenRouter).
func chatReasoning(key, v gjson.Result) thread.Part {
	r := thread.Reasoning{Text: v.Str, Source: chatMemberSource(key, v)}
	if v.IsArray() {
		var texts []string
		v.ForEach(func(_, d gjson.Result) bool {
			for _, name := range [...]string{"text", "summary"} {
				if t := d.Get(name); t.Type == gjson.String {
					texts = append(texts, t.Str)
				}
			}
			for _, name := range [...]string{"signature", "data"} {
				if s := d.Get(name); s.Type == gjson.String {
					r.Signature += s.Str
				}
			}
			return true
		})
		r.Text = strings.Join(texts, "\n")
	}
	return r
}

// chatReader turns elements into messages; it remembers the calls, because a
// result does not name its tool and a legacy result not even its call.
type chatReader struct {
	names map[string]string // call id → tool
	local []thread.ToolCall // calls without id of the last assistant message, unanswered
	made  int               // local ids given out
}

func (d *chatReader) message(e *chatElement) thread.Message {
	m := thread.Message{Name: e.name}
	switch e.role {
	case "user":
		m.Role = thread.User
		m.Parts = chatContent(e.content)
	case "assistant":
		m.Role = thread.Assistant
		m.Parts = slices.Concat(e.reasoning, chatContent(e.content), e.other)
		d.calls(&m, e)
	case "tool", "function":
		m.Role = thread.Tool
		m.Name = ""
		m.Parts = []thread.Part{d.result(e)}
	default:
		m.Role = thread.System
		m.Parts = chatContent(e.content)
	}
	return m
}

func (d *chatReader) calls(m *thread.Message, e *chatElement) {
	d.local = d.local[:0]
	add := func(c thread.ToolCall) {
		if c.ID == "" {
			c.ID = thread.LocalID(d.made)
			d.made++
			d.local = append(d.local, c)
		}
		d.names[c.ID] = c.Name
		m.Parts = append(m.Parts, c)
	}
	if e.calls.IsArray() {
		e.calls.ForEach(func(_, v gjson.Result) bool {
			if !v.IsObject() {
				m.Parts = append(m.Parts, thread.Opaque{Kind: "tool_calls", Source: thread.Source{API: wire.Chat, Raw: v.Raw}})
				return true
			}
			add(chatCall(v))
			return true
		})
	}
	if e.functionCall.IsObject() {
		add(thread.ToolCall{
			Type: chatLegacy, Name: e.functionCall.Get("name").Str,
			Arguments: chatText(e.functionCall.Get("arguments")),
			Source:    thread.Source{API: wire.Chat, Raw: e.functionCall.Raw},
		})
	}
}

// chatLegacy is the type of calls of the deprecated functions interface.
const chatLegacy = "function_call"

// chatCall reads an entry of tool_calls. A call of a type unknown here keeps
// its type and, as arguments, the object named after the type; it stays a call
// because a tool message answers it.
func chatCall(v gjson.Result) thread.ToolCall {
	c := thread.ToolCall{Source: thread.Source{API: wire.Chat, Raw: v.Raw}}
	var kind string
	var body gjson.Result
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "id":
			c.ID = v.Str
		case "type":
			kind = v.Str
		case "index":
		case "extra_content":
			c.Signature = v.Get("google.thought_signature").Str
		default:
			if v.IsObject() && (!body.Exists() || key.Str == kind || key.Str == "function") {
				body = v
			}
		}
		return true
	})
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
		CallID: e.answers, Outcome: thread.Success,
		Content: chatContent(e.content), Source: thread.Source{API: wire.Chat},
	}
	if r.CallID == "" {
		r.CallID = d.answer(e)
	}
	r.Tool = d.names[r.CallID]
	if r.Tool == "" {
		r.Tool = e.name
	}
	return r
}

// answer finds the call that a result without an id belongs to: for function
// messages the latest open call of that name, for tool messages the first open
// one, since servers without ids answer in order.
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
		if c.Name == e.name {
			d.local = slices.Delete(d.local, i, i+1)
			return c.ID
		}
	}
	return ""
}

// chatContent reads a content field: a string, an array of parts, or null.
// Anything else is kept as an opaque part.
func chatContent(v gjson.Result) []thread.Part {
	switch {
	case v.Type == gjson.Null: // absent as well
		return nil
	case v.Type == gjson.String:
		if v.Str == "" {
			return nil
		}
		return []thread.Part{thread.Text{Text: v.Str, Source: thread.Source{API: wire.Chat}}}
	case v.IsArray():
		var parts []thread.Part
		v.ForEach(func(_, part gjson.Result) bool {
			parts = append(parts, chatPart(part))
			return true
		})
		return parts
	}
	return []thread.Part{thread.Opaque{
		Kind:   "content",
		Source: thread.Source{API: wire.Chat, Raw: `{"content":` + v.Raw + "}"},
	}}
}

// chatPart reads one part of a content array.
func chatPart(v gjson.Result) thread.Part {
	src := thread.Source{API: wire.Chat, Raw: v.Raw}
	if !v.IsObject() {
		return thread.Opaque{Text: v.Str, Source: src}
	}
	var kind, text string
	isText := false
	v.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v.Str
		case "text":
			text, isText = v.Str, v.Type == gjson.String
		case "cache_control":
			if src.Cache = v.Get("ttl").Str; src.Cache == "" && v.IsObject() {
				src.Cache = "5m"
			}
		}
		return true
	})
	switch kind {
	case "text":
		if isText {
			return thread.Text{Text: text, Source: src}
		}
	case "image_url", "input_audio", "file":
		if m, ok := chatReadMedia(kind, v.Get(kind)); ok {
			m.Source = src
			return m
		}
	case "refusal":
		text = v.Get(kind).Str
	}
	return thread.Opaque{Kind: kind, Text: text, Source: src}
}
