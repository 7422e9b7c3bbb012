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
