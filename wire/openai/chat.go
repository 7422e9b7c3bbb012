// Package openai has the codecs and strict validators of OpenAI's two request APIs, Chat
// Completions (Chat) and Responses (Responses), which most other providers and local
// servers speak too. The two have little in common, so each has files of its own: chat*.go
// and responses*.go.
//
// Both write a body that was read back byte for byte. Where messages, tools, model or the
// output limit changed, only those places of the body change.
package openai

import (
	"cmp"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/ownformat"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Chat is the codec of POST /v1/chat/completions, for OpenAI and the many compatible
// servers. It implements wire.Codec. The zero value is ready to use and safe for
// concurrent use.
//
// How a body maps to a prompt:
//   - The leading system and developer messages become Prompt.System, up to a summary of
//     ours (policy workstream sends it in that role); later ones are messages of role
//     thread.System. Every other element is one message. Frame.Position() counts from
//     the first element that is not in Prompt.System; Source.System is how many are.
//   - A part has Source.Raw if it has JSON of its own: parts of a content array and
//     entries of tool_calls do; plain string content and the result of a tool message
//     do not.
//   - Other fields of an assistant message become parts whose Raw is an object with that
//     one member: Reasoning (reasoning_content, reasoning, reasoning_details,
//     thinking_blocks, … of compatible servers) or Opaque (refusal, audio, and what is not
//     known here, except for cache marks), so that a message that is written anew keeps them.
//   - Empty strings make no part, nor do fields without content that are not known here.
//   - Calls without an id, mostly the legacy function_call, get thread.LocalID(n), n
//     counting such calls from 0.
//   - A call of unknown type is still a ToolCall, with that Type, because a tool message
//     answers it; its Arguments are the object named after the type.
//   - The API has no error flag, so every tool result is a Success.
type Chat struct{}

var _ wire.Codec = Chat{}

// API returns wire.Chat.
func (Chat) API() string { return wire.Chat }

// Decode reads a request body. The error wraps wire.ErrFormat and names the JSON path: the
// body is no valid JSON object or nests deeper than 1000 levels, messages is no array, an
// element is no object or has an unknown role, or a field read here is given twice.
func (Chat) Decode(body string) (*prompt.Prompt, error) {
	d, err := chatFormat.Read(body, chatDocument)
	if err != nil {
		return nil, err
	}
	messages, system, err := chatReadMessages(d.Get("messages"))
	if err != nil {
		return nil, err
	}
	p := &prompt.Prompt{
		Model:     d.Get("model").Str,
		System:    system,
		Tools:     chatReadTools(d),
		Messages:  messages,
		MaxOutput: chatMaxOutput(d),
	}
	p.Source = &prompt.Source{
		API: wire.Chat, Body: body,
		System: len(system), Tools: len(p.Tools), Elements: len(messages),
	}
	return p, nil
}

// DecodeChatMessages reads an array of chat messages without a request around it, as
// transcripts hold it. It returns what Decode would. The error wraps wire.ErrFormat.
func DecodeChatMessages(array string) ([]thread.Message, []prompt.System, error) {
	if err := chatFormat.Check(array); err != nil {
		return nil, nil, err
	}
	list := gjson.Parse(array)
	if !list.IsArray() {
		return nil, nil, chatFormat.Errorf("body", "want an array of messages")
	}
	return chatReadMessages(list)
}

// chatFormat reports bodies that are not requests of this API.
const chatFormat = codec.Format("openai chat")

func chatDocument(doc string) (*rawjson.Document, error) {
	d, err := chatFormat.Open(doc, nil, "model", "messages", "tools", "functions", "max_completion_tokens", "max_tokens")
	if err == nil && !d.Get("messages").IsArray() {
		return nil, chatFormat.Errorf("messages", "want an array of messages")
	}
	return d, err
}

// chatMaxOutput reads max_completion_tokens, or else the older max_tokens.
func chatMaxOutput(d *rawjson.Document) int {
	return cmp.Or(rawjson.Count(d.Get("max_completion_tokens")), rawjson.Count(d.Get("max_tokens")))
}

func chatReadMessages(array gjson.Result) (messages []thread.Message, system []prompt.System, err error) {
	d := chatReader{names: map[string]string{}}
	i, leading := -1, true
	var room rawjson.Fields // for the members of one element after the other
	for v := range rawjson.Items(array) {
		i++
		e := chatElement{Fields: room[:0]}
		if err := e.read(v, i); err != nil {
			return nil, nil, err
		}
		room = e.Fields
		if leading = leading && (e.role == "system" || e.role == "developer"); leading {
			m := thread.Message{Role: thread.System, Parts: chatContent(e.Get("content"))}
			if leading = !ownformat.IsSummary(&m); leading {
				from := chatSource(v.Raw)
				for _, part := range m.Parts { // the last mark counts
					from.Cache = cmp.Or(part.From().Cache, from.Cache)
				}
				system = append(system, prompt.System{Text: m.Text(), Role: e.role, Source: from})
				continue
			}
		}
		m := d.message(&e)
		m.Frame = thread.NewFrame(wire.Chat, v.Raw, i-len(system), 1, 1)
		if len(messages) == cap(messages) {
			messages = slices.Grow(messages, max(16, len(messages))) // smaller steps would leave much garbage
		}
		messages = append(messages, m)
	}
	return messages, system, nil
}

// maxName is the length limit of a function's name, in characters.
const maxName = 64

// fittedName is the name of a function in the characters and the length that OpenAI
// allows.
func fittedName(name string) string { return codec.FitPlainName(name, maxName) }
