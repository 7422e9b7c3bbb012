package openai

import (
	"strconv"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
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
