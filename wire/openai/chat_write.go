package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chatWriter writes messages from their fields.
type chatWriter struct {
	p *prompt.Prompt
	// kept are ids and names that the API would refuse and that stand in JSON
	// which is sent on as it is; renaming the other half of a pair would part it.
	kept map[string]bool
	// calls are the forms of calls that are not answered by a plain tool message.
	calls map[string]chatForm
}

// chatForm says how a call is answered.
type chatForm struct {
	legacy string // the name that a function message must give
	noID   bool   // the call or its result is sent on without an id, so neither gets one
}

// chatFramed reports whether the message is sent on as it was read.
func chatFramed(m *thread.Message) bool {
	return m.Frame != nil && m.Frame.API() == wire.Chat && m.Frame.Messages() <= 1
}

func newChatWriter(p *prompt.Prompt) *chatWriter {
	w := &chatWriter{p: p, kept: map[string]bool{}, calls: map[string]chatForm{}}
	keep := func(s string, limit int) {
		if !chatPlain(s, limit) {
			w.kept[s] = true
		}
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		framed := chatFramed(m)
		legacy := false // a message holds one function_call at most
		for _, part := range m.Parts {
			switch c := part.(type) {
			case thread.ToolCall:
				raw := c.API == wire.Chat && c.Raw != ""
				if framed || raw {
					keep(c.ID, chatMaxID)
					keep(c.Name, chatMaxName)
				}
				switch {
				case chatIsLegacy(c) && !legacy:
					legacy = true
					w.calls[c.ID] = chatForm{legacy: c.Name}
				case raw:
					w.keepNoID(c.ID, c.Raw)
				}
			case thread.ToolResult:
				if framed {
					keep(c.CallID, chatMaxID)
					w.keepNoID(c.CallID, m.Frame.Raw())
				}
			}
		}
	}
	for i := range p.Tools {
		if p.Tools[i].API == wire.Chat && p.Tools[i].Raw != "" {
			keep(p.Tools[i].Name, chatMaxName)
		}
	}
	return w
}

// keepNoID notes that one half of a pair is sent on without an id.
func (w *chatWriter) keepNoID(id, raw string) {
	if _, known := w.calls[id]; known || !thread.IsLocalID(id) {
		return
	}
	if gjson.Get(raw, "id").Str == "" && gjson.Get(raw, "tool_call_id").Str == "" {
		w.calls[id] = chatForm{noID: true}
	}
}

// size guesses the length of the messages in bytes, so that the body is
// written into one buffer.
func (w *chatWriter) size() int {
	n := 256
	for i := range w.p.System {
		n += len(w.p.System[i].Text)*9/8 + 64
	}
	for i := range w.p.Messages {
		m := &w.p.Messages[i]
		if chatFramed(m) {
			n += len(m.Frame.Raw()) + 2
			continue
		}
		n += chatPartsSize(m.Parts) + 64
	}
	for i := range w.p.Tools {
		t := &w.p.Tools[i]
		n += len(t.Schema) + len(t.Description)*9/8 + 128
	}
	return n
}

func chatPartsSize(parts []thread.Part) (n int) {
	for _, part := range parts {
		switch p := part.(type) {
		case thread.Text:
			n += len(p.Text)*9/8 + 32
		case thread.Media:
			n += len(p.Data) + len(p.URL) + len(p.Text) + 128
		case thread.ToolCall:
			n += len(p.Arguments)*5/4 + len(p.Name) + 128
		case thread.ToolResult:
			n += chatPartsSize(p.Content) + len(p.Structured) + 128
		default:
			n += len(part.From().Raw)
		}
	}
	return n
}

// appendMessage writes one message from its fields. It is false when there is
// nothing to say.
func (w *chatWriter) appendMessage(b []byte, m *thread.Message) ([]byte, bool) {
	switch m.Role {
	case thread.Assistant:
		return w.appendAssistant(b, m)
	case thread.Tool:
		r, ok := m.Result()
		if !ok {
			return b, false
		}
		return w.appendResult(b, r), true
	}
	c := chatContentOf(m.Parts, m.Role)
	if c.empty() && m.Role != thread.User {
		return b, false
	}
	b = append(b, `{"role":"`...)
	b = append(b, m.Role...)
	b = append(b, '"')
	b = chatAppendName(b, m.Name)
	return append(c.append(append(b, `,"content":`...)), '}'), true
}

func (w *chatWriter) appendAssistant(b []byte, m *thread.Message) ([]byte, bool) {
	start := len(b)
	b = chatAppendName(append(b, `{"role":"assistant"`...), m.Name)
	said := false // something that makes the message valid without content
	var after []string
	hasContent := false
	for _, part := range m.Parts {
		member, ok := chatMemberOf(part)
		if !ok {
			continue
		}
		if _, thinking := part.(thread.Reasoning); thinking {
			b = append(append(b, ','), member...)
			continue
		}
		after = append(after, member)
		said = true
		hasContent = hasContent || part.(thread.Opaque).Kind == "content"
	}
	calls, legacy := chatCallsOf(m.Parts)
	said = said || len(calls) > 0 || legacy != nil
	c := chatContentOf(m.Parts, thread.Assistant)
	switch {
	case hasContent:
	case !c.empty():
		b = c.append(append(b, `,"content":`...))
	case said:
		b = append(b, `,"content":null`...)
	default:
		return b[:start], false
	}
	for _, member := range after {
		b = append(append(b, ','), member...)
	}
	if len(calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = w.appendCall(b, calls[i])
		}
		b = append(b, ']')
	}
	if legacy != nil {
		b = append(b, `,"function_call":`...)
		if legacy.API == wire.Chat && legacy.Raw != "" {
			b = append(b, legacy.Raw...)
		} else {
			b = w.appendFunction(b, legacy)
		}
	}
	return append(b, '}'), true
}

// chatMemberOf returns the field beside content that a part was read from, as
// the text "name":value.
func chatMemberOf(part thread.Part) (string, bool) {
	src := part.From()
	if src.API != wire.Chat || len(src.Raw) < 2 {
		return "", false
	}
	switch p := part.(type) {
	case thread.Reasoning:
		if !strings.HasPrefix(src.Raw, `{"reasoning`) {
			return "", false
		}
	case thread.Opaque:
		if p.Kind == "" || !strings.HasPrefix(src.Raw, `{"`+p.Kind+`":`) || gjson.Get(src.Raw, "type").Exists() {
			return "", false
		}
	default:
		return "", false
	}
	return src.Raw[1 : len(src.Raw)-1], true
}

// chatIsLegacy reports whether a call is written as function_call: one that
// was read so, changed or not.
func chatIsLegacy(c thread.ToolCall) bool {
	return c.Type == chatLegacy && (c.API == wire.Chat || c.API == "")
}

func chatCallsOf(parts []thread.Part) (calls []thread.ToolCall, legacy *thread.ToolCall) {
	for _, part := range parts {
		c, ok := part.(thread.ToolCall)
		if !ok {
			continue
		}
		if legacy == nil && chatIsLegacy(c) {
			legacy = &c
			continue
		}
		calls = append(calls, c)
	}
	return calls, legacy
}

func (w *chatWriter) appendCall(b []byte, c thread.ToolCall) []byte {
	if c.API == wire.Chat && c.Raw != "" && c.Type != chatLegacy {
		return append(b, c.Raw...)
	}
	b = append(b, '{')
	if !w.calls[c.ID].noID {
		b = append(chatAppendField(b, "id", w.callID(c.ID)), ',')
	}
	if c.Type == "custom" {
		b = append(b, `"type":"custom","custom":{`...)
		b = chatAppendField(b, "name", w.toolName(c.Name))
		b = chatAppendField(b, "input", c.Arguments)
		return append(b, '}', '}')
	}
	b = append(b, `"type":"function","function":`...)
	b = w.appendFunction(b, &c)
	if c.Signature != "" && c.API == wire.Chat {
		b = chatAppendField(append(b, `,"extra_content":{"google":{`...), "thought_signature", c.Signature)
		b = append(b, '}', '}')
	}
	return append(b, '}')
}

func (w *chatWriter) appendFunction(b []byte, c *thread.ToolCall) []byte {
	name := c.Name
	if name == "" {
		name = c.Type
	}
	args := c.Arguments
	switch {
	case strings.TrimSpace(args) == "":
		args = "{}"
	case !rawjson.Valid(args):
		args = string(append(chatAppendField([]byte{'{'}, "input", args), '}'))
	}
	b = chatAppendField(append(b, '{'), "name", w.toolName(name))
	b = chatAppendField(b, "arguments", args)
	return append(b, '}')
}

func (w *chatWriter) appendResult(b []byte, r thread.ToolResult) []byte {
	c := chatContentOf(r.Content, thread.Tool)
	if c.empty() && r.Structured != "" {
		c.text(r.Structured)
	}
	form := w.calls[r.CallID]
	if form.legacy != "" {
		b = chatAppendField(append(b, '{'), "role", "function")
		b = chatAppendField(b, "name", w.toolName(form.legacy))
		if c.array { // function messages take nothing but a string
			return append(chatAppendField(b, "content", r.Text()), '}')
		}
		return append(c.append(append(b, `,"content":`...)), '}')
	}
	b = chatAppendField(append(b, '{'), "role", "tool")
	if !form.noID {
		b = chatAppendField(b, "tool_call_id", w.callID(r.CallID))
	}
	return append(c.append(append(b, `,"content":`...)), '}')
}

// chatAppendName writes a participant's name where the API allows it.
func chatAppendName(b []byte, name string) []byte {
	for _, r := range name {
		if unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) {
			return b
		}
	}
	if name == "" || len(name) > chatMaxName {
		return b
	}
	return chatAppendField(b, "name", name)
}

// chatMaxID and chatMaxName are the provider's limits in characters, from its
// errors ("string too long. Expected a string with maximum length 40").
const (
	chatMaxID   = 40
	chatMaxName = 64
)

// chatPlain reports whether s has 1 to limit characters of [a-zA-Z0-9_-].
func chatPlain(s string, limit int) bool {
	for i := 0; i < len(s); i++ {
		if !chatPlainByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= limit
}

func chatPlainByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// callID returns an id that the API accepts; it depends on id alone, so a call
// and its result stay a pair.
func (w *chatWriter) callID(id string) string {
	if chatPlain(id, chatMaxID) || w.kept[id] {
		return id
	}
	return "call_" + chatHash(id, 12)
}

// toolName returns a name that the API accepts. A name that had to change ends
// in a hash, so that two tools never share one.
func (w *chatWriter) toolName(name string) string {
	if chatPlain(name, chatMaxName) || w.kept[name] {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name) && b.Len() < chatMaxName-9; i++ {
		if chatPlainByte(name[i]) {
			b.WriteByte(name[i])
		} else if i == 0 || chatPlainByte(name[i-1]) {
			b.WriteByte('_')
		}
	}
	return b.String() + "_" + chatHash(name, 4)
}

func chatHash(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}
