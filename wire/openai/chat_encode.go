package openai

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Encode writes a request body.
//
// For a prompt that Decode read, the body's other fields stay byte for byte,
// and of messages, tools, functions, model and the output limit only what
// differs is written anew. A message with a Frame of this API is sent as
// Frame.Raw(), a part, tool or system block with Source.Raw of this API as that:
// who changes one clears the other. Without any tool left, tool_choice and its
// like go too, because the provider refuses them alone.
//
// For any other prompt the body is model, messages, tools and
// max_completion_tokens (when MaxOutput is set), and:
//   - System blocks come first, as role developer where they had it, else system.
//   - Texts of one message are joined with newlines into one string; a content
//     array is written only for media or parts that were read from this API.
//   - Reasoning and opaque parts of other APIs are left out. Assistant and system
//     messages that have nothing left are left out whole; a user message keeps
//     its place with the content "", which the provider takes. An assistant
//     message with calls and no text has the content null.
//   - Media are sent in user messages; elsewhere, and where the API has no form
//     for them, a placeholder such as "[image: image/png, 5120 bytes]" stands.
//   - A failed result is sent as its text: the API has no flag, and a word of
//     ours in front would be taken for the tool's.
//   - Call ids that the API refuses (over 40 characters, odd characters) become
//     a hash of themselves, for call and result alike; names of tools likewise
//     lose what ^[a-zA-Z0-9_-]{1,64}$ does not allow. What stands in messages
//     that are sent as they are is never renamed.
//   - Types in schemas of Gemini lose their capitals.
//   - Arguments that are no JSON are wrapped as {"input": …}, custom calls stay
//     custom, and the legacy function_call form is kept for calls read from it.
//
// Cache points need nothing: the provider caches by itself. The order of
// messages is the caller's; nothing is moved. The error wraps wire.ErrFormat
// when Source.Body is no chat request.
func (Chat) Encode(p *prompt.Prompt) ([]byte, error) {
	w := newChatWriter(p)
	if p.Source == nil || p.Source.API != wire.Chat {
		return w.translate(), nil
	}
	return w.splice()
}

// translate writes a body of its own.
func (w *chatWriter) translate() []byte {
	p := w.p
	b := make([]byte, 0, w.size())
	b = chatAppendField(append(b, '{'), "model", p.Model)
	b = append(b, `,"messages":`...)
	b = w.appendMessages(b, "")
	if len(p.Tools) > 0 {
		before := len(b)
		b = append(b, `,"tools":`...)
		if b = w.appendTools(b, p.Tools, "", false); b[len(b)-2] == '[' {
			b = b[:before] // an empty list is refused
		}
	}
	if p.MaxOutput > 0 {
		b = append(b, `,"max_completion_tokens":`...)
		b = strconv.AppendInt(b, int64(p.MaxOutput), 10)
	}
	return append(b, '}')
}

// splice writes the source body with the differences in place.
func (w *chatWriter) splice() ([]byte, error) {
	p, body := w.p, w.p.Source.Body
	root := gjson.Result{Type: gjson.JSON, Raw: body}
	f, err := chatReadFields(root)
	if err != nil {
		return nil, err
	}
	if !f.messages.IsArray() {
		return nil, chatError("messages", "missing or not an array")
	}
	tools, functions := f.splitTools(p.Tools)
	keepTools := f.sameTools(p.Tools)
	limit := "max_completion_tokens"
	if chatCount(f.maxCompletion) == 0 && f.maxTokens.Exists() {
		limit = "max_tokens"
	}

	s := chatSplicer{body: body, b: make([]byte, 0, w.size()+len(body)-len(f.messages.Raw))}
	root.ForEach(func(key, value gjson.Result) bool {
		s.member(key, value)
		switch name := key.Str; {
		case name == "messages":
			s.b = w.appendMessages(s.b, value.Raw)
		case name == "model" && p.Model != value.Str:
			s.b = rawjson.AppendString(s.b, p.Model)
		case name == limit && p.MaxOutput != f.maxOutput():
			if p.MaxOutput <= 0 {
				s.drop()
				break
			}
			s.b = strconv.AppendInt(s.b, int64(p.MaxOutput), 10)
		case keepTools:
			s.b = append(s.b, value.Raw...)
		case name == "tools" && len(tools) > 0:
			s.b = w.appendTools(s.b, tools, value.Raw, false)
		case name == "functions" && len(functions) > 0:
			s.b = w.appendTools(s.b, functions, value.Raw, true)
		case name == "tools", name == "functions",
			len(tools) == 0 && (name == "tool_choice" || name == "parallel_tool_calls"),
			len(functions) == 0 && name == "function_call":
			s.drop()
		default:
			s.b = append(s.b, value.Raw...)
		}
		return true
	})
	if !f.model.Exists() && p.Model != "" {
		s.b = append(s.b, `,"model":`...)
		s.b = rawjson.AppendString(s.b, p.Model)
	}
	if !f.maxCompletion.Exists() && !f.maxTokens.Exists() && p.MaxOutput > 0 {
		s.b = append(s.b, `,"max_completion_tokens":`...)
		s.b = strconv.AppendInt(s.b, int64(p.MaxOutput), 10)
	}
	if !f.tools.Exists() && len(tools) > 0 {
		s.b = append(s.b, `,"tools":`...)
		s.b = w.appendTools(s.b, tools, "", false)
	}
	return append(s.b, body[s.end:]...), nil
}

// chatSplicer copies an object member by member. Everything between members is
// copied too, except the separator of members that are left out.
type chatSplicer struct {
	body   string
	b      []byte
	end    int // where the last member ended in body
	kept   int
	before int // length of b before the last member
}

// member writes what stands before the value of the next member.
func (s *chatSplicer) member(key, value gjson.Result) {
	s.before = len(s.b)
	from := s.end
	if s.kept == 0 && from > 0 {
		from = key.Index // all members before it were left out, with the brace kept
	}
	s.b = append(s.b, s.body[from:value.Index]...)
	s.end = value.Index + len(value.Raw)
	s.kept++
}

// drop takes the last member out again.
func (s *chatSplicer) drop() {
	s.b = s.b[:s.before]
	s.kept--
	if s.kept == 0 && len(s.b) == 0 {
		s.b = append(s.b, '{')
	}
}

// appendMessages writes system blocks and messages; old is the array as it was.
func (w *chatWriter) appendMessages(b []byte, old string) []byte {
	j := chatJoiner{old: chatSplit(old), b: b}
	j.open()
	for i := range w.p.System {
		s := &w.p.System[i]
		switch {
		case s.API == wire.Chat && s.Raw != "":
			j.next(j.old.find(i, s.Raw))
			j.b = append(j.b, s.Raw...)
		case s.Text != "":
			j.next(-1)
			j.b = chatAppendSystem(j.b, s)
		}
	}
	offset := 0
	if w.p.Source != nil {
		offset = w.p.Source.System
	}
	for i := range w.p.Messages {
		m := &w.p.Messages[i]
		if chatFramed(m) {
			j.next(j.old.find(offset+m.Frame.Position(), m.Frame.Raw()))
			j.b = append(j.b, m.Frame.Raw()...)
			continue
		}
		before := j
		j.next(-1)
		var ok bool
		if j.b, ok = w.appendMessage(j.b, m); !ok {
			j = before
		}
	}
	j.close()
	return j.b
}

func chatAppendSystem(b []byte, s *prompt.System) []byte {
	role := "system"
	if s.Role == "developer" {
		role = s.Role
	}
	b = chatAppendField(append(b, '{'), "role", role)
	b = chatAppendField(b, "content", s.Text)
	return append(b, '}')
}
