package openai

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// chatWriter writes messages from their fields.
type chatWriter struct {
	p *prompt.Prompt
	// kept are ids and names that the API would refuse, in JSON that keeps its bytes. The
	// other half of such a pair must keep them too.
	kept map[string]bool
	// calls are the calls that a plain tool message does not answer.
	calls map[string]chatForm
	// object is reused for each message.
	object rawjson.Object
}

// chatForm says how a call is answered.
type chatForm struct {
	legacy string // the name that a function message must give
	noID   bool   // the call or its result keeps bytes without an id, so neither gets one
}

func hasChatFrame(m *thread.Message) bool {
	return m.Frame != nil && m.Frame.API() == wire.Chat && m.Frame.Messages() <= 1
}

func newChatWriter(p *prompt.Prompt) *chatWriter {
	w := &chatWriter{p: p, kept: map[string]bool{}, calls: map[string]chatForm{}}
	keep := func(s string, limit int) {
		if !codec.IsPlain(s, limit) {
			w.kept[s] = true
		}
	}
	for i := range p.Messages {
		m := &p.Messages[i]
		framed := hasChatFrame(m)
		legacy := false // a message holds one function_call at most
		for _, part := range m.Parts {
			switch c := part.(type) {
			case thread.ToolCall:
				raw := isChatSource(c.Source)
				if framed || raw {
					keep(c.ID, chatMaxID)
					keep(c.Name, maxName)
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
		if isChatSource(p.Tools[i].Source) {
			keep(p.Tools[i].Name, maxName)
		}
	}
	return w
}

// keepNoID records that one half of a pair is sent without an id.
func (w *chatWriter) keepNoID(id, raw string) {
	if _, known := w.calls[id]; known || !thread.IsLocalID(id) {
		return
	}
	if gjson.Get(raw, "id").Str == "" && gjson.Get(raw, "tool_call_id").Str == "" {
		w.calls[id] = chatForm{noID: true}
	}
}

// message writes one message from its fields; "" when there is nothing to say.
func (w *chatWriter) message(m *thread.Message) string {
	switch m.Role {
	case thread.Assistant:
		return w.assistant(m)
	case thread.Tool:
		if r, ok := m.Result(); ok {
			return w.result(r)
		}
		return ""
	}
	content := chatContentOf(m.Parts, m.Role)
	if content.empty() && m.Role != thread.User { // the provider takes an empty one of the user
		return ""
	}
	return content.writeTo(w.begin(string(m.Role), m.Name)).String()
}

// begin begins a message, with the participant's name if the API allows it.
func (w *chatWriter) begin(role, name string) *rawjson.Object {
	o := w.object.Reset().Str("role", role)
	refused := strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`<|\/>`, r) })
	if name != "" && len(name) <= maxName && !refused {
		o.Str("name", name)
	}
	return o
}

func (w *chatWriter) assistant(m *thread.Message) string {
	o := w.begin("assistant", m.Name)
	var after []rawjson.Field // refusal and the like, which follow the content
	content := chatContentOf(m.Parts, thread.Assistant)
	var calls []string
	var legacy *thread.ToolCall
	for _, part := range m.Parts {
		if c, isCall := part.(thread.ToolCall); isCall {
			if legacy == nil && chatIsLegacy(c) {
				legacy = &c
			} else {
				calls = append(calls, w.call(c))
			}
			continue
		}
		member, ok := chatMemberOf(part)
		switch _, thinking := part.(thread.Reasoning); {
		case !ok:
		case thinking:
			o.Raw(member.Name, member.Value.Raw)
		case member.Name == "content":
			content = chatContentJSON{array: member.Value.Raw}
		default:
			after = append(after, member)
		}
	}
	if content.empty() {
		if len(after) == 0 && len(calls) == 0 && legacy == nil {
			return ""
		}
		content.array = "null" // something else makes the message valid
	}
	content.writeTo(o)
	for _, member := range after {
		o.Raw(member.Name, member.Value.Raw)
	}
	if len(calls) > 0 {
		o.Raw("tool_calls", rawjson.Array(calls))
	}
	if legacy != nil {
		written := legacy.Raw
		if !isChatSource(legacy.Source) {
			written = w.function(legacy)
		}
		o.Raw("function_call", written)
	}
	return o.String()
}

func isChatSource(s thread.Source) bool { return s.API == wire.Chat && s.Raw != "" }

// chatMemberOf returns the field beside content that a part was read from.
func chatMemberOf(part thread.Part) (member rawjson.Field, ok bool) {
	src := part.From()
	if !isChatSource(src) {
		return member, false
	}
	name := ""
	switch p := part.(type) {
	case thread.Reasoning:
	case thread.Opaque:
		name = p.Kind
	default:
		return member, false
	}
	fields := rawjson.FieldsOf(gjson.Parse(src.Raw), nil)
	if len(fields) != 1 || name != "" && fields[0].Name != name || name == "" && !chatReasons[fields[0].Name] {
		return member, false
	}
	return fields[0], true
}

// chatIsLegacy reports whether a call is written as function_call, because it was read from
// one.
func chatIsLegacy(c thread.ToolCall) bool {
	return c.Type == chatLegacy && (c.API == wire.Chat || c.API == "")
}

func (w *chatWriter) call(c thread.ToolCall) string {
	if isChatSource(c.Source) && c.Type != chatLegacy {
		return c.Raw
	}
	o := new(rawjson.Object)
	if !w.calls[c.ID].noID {
		o.Str("id", w.callID(c.ID))
	}
	if c.Type == "custom" {
		custom := new(rawjson.Object).Str("name", w.toolName(c.Name)).Str("input", c.Arguments)
		return o.Str("type", c.Type).Raw("custom", custom.String()).String()
	}
	o.Str("type", "function").Raw("function", w.function(&c))
	if c.Signature != "" && c.API == wire.Chat {
		o.Raw("extra_content", `{"google":{"thought_signature":`+rawjson.Quote(c.Signature)+"}}")
	}
	return o.String()
}

func (w *chatWriter) function(c *thread.ToolCall) string {
	args := c.Arguments
	switch {
	case strings.TrimSpace(args) == "":
		args = "{}"
	case !rawjson.Valid(args):
		args = new(rawjson.Object).Str("input", args).String()
	}
	return new(rawjson.Object).Str("name", w.toolName(cmp.Or(c.Name, c.Type))).Str("arguments", args).String()
}

func (w *chatWriter) result(r thread.ToolResult) string {
	content := chatContentOf(r.Content, thread.Tool)
	if content.empty() {
		content.text = r.Structured
	}
	form := w.calls[r.CallID]
	if form.legacy != "" {
		if content.array != "" { // function messages take nothing but a string
			content = chatContentJSON{text: r.Text()}
		}
		return content.writeTo(w.begin("function", "").Str("name", w.toolName(form.legacy))).String()
	}
	o := w.begin("tool", "")
	if !form.noID {
		o.Str("tool_call_id", w.callID(r.CallID))
	}
	return content.writeTo(o).String()
}

// chatMaxID is the provider's limit in characters, from its errors ("string too
// long. Expected a string with maximum length 40").
const chatMaxID = 40

// callID returns an id that the API accepts; it depends on id alone, so a call
// and its result stay a pair.
func (w *chatWriter) callID(id string) string {
	if codec.IsPlain(id, chatMaxID) || w.kept[id] {
		return id
	}
	return "call_" + codec.Hash(id, 12)
}

func (w *chatWriter) toolName(name string) string {
	if w.kept[name] {
		return name
	}
	return fittedName(name)
}
