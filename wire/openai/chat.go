package openai

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/ourform"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Chat is the codec of POST /v1/chat/completions, as OpenAI and the many
// compatible servers take it. It implements wire.Codec. The zero value is
// ready to use and safe for concurrent use.
//
// How a body maps to a prompt:
//   - The leading run of system and developer messages is Prompt.System, up to a
//     summary of ours (policy workstream says it in that role); later ones are
//     messages of role thread.System. Every other element is one
//     message. Frame.Position() counts from the first element that is not in
//     Prompt.System, whose length is Source.System.
//   - A part has Source.Raw where it has JSON of its own: the parts of a content
//     array and the entries of tool_calls. Content that is a plain string, and a
//     tool message's result, have none.
//   - Fields of an assistant message that are no content (reasoning_content,
//     reasoning, reasoning_details of compatible servers; refusal; audio) become
//     Reasoning and Opaque parts whose Raw is an object with that one member.
//   - Empty strings make no part.
//   - Calls without an id, above all the legacy function_call, get
//     thread.LocalID(n), n counting such calls from 0.
//   - A call of a type unknown here is still a ToolCall, with that Type, because a
//     tool message answers it; its Arguments are the object named after the type.
//   - The API has no error flag, so every tool result is a Success.
type Chat struct{}

var _ wire.Codec = Chat{}

// API returns wire.Chat.
func (Chat) API() string { return wire.Chat }

// Decode reads a request body. The error wraps wire.ErrFormat and names the
// JSON path: no valid JSON object, nested deeper than 1000 levels, no messages
// array, an element that is no object or has an unknown role, or one of the
// fields read here given twice.
func (Chat) Decode(body []byte) (*prompt.Prompt, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return nil, chatError("body", "%v", err)
	}
	d, err := chatDocument(doc)
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
		API: wire.Chat, Body: doc,
		System: len(system), Tools: len(p.Tools), Elements: len(messages),
	}
	return p, nil
}

// DecodeChatMessages reads an array of chat messages that stands alone, as
// transcripts hold it: the messages field of a request without the request.
// The messages and system blocks are those that Decode would give. The error
// wraps wire.ErrFormat.
func DecodeChatMessages(array string) ([]thread.Message, []prompt.System, error) {
	if err := rawjson.Check(array); err != nil {
		return nil, nil, chatError("body", "%v", err)
	}
	list := gjson.Parse(array)
	if !list.IsArray() {
		return nil, nil, chatError("body", "not a JSON array")
	}
	return chatReadMessages(list)
}

// chatDocument cuts a body that is known to be JSON into its members.
func chatDocument(doc string) (*rawjson.Document, error) {
	d, ok := rawjson.Open(doc, nil)
	if !ok {
		return nil, chatError("body", "not a JSON object")
	}
	if name := d.FirstDuplicate("model", "messages", "tools", "functions", "max_completion_tokens", "max_tokens"); name != "" {
		return nil, chatError(name, "given twice; send it once")
	}
	if !d.Get("messages").IsArray() {
		return nil, chatError("messages", "missing or not an array")
	}
	return d, nil
}

// chatMaxOutput reads max_completion_tokens, or else the older max_tokens.
func chatMaxOutput(d *rawjson.Document) int {
	return cmp.Or(chatCount(d.Get("max_completion_tokens")), chatCount(d.Get("max_tokens")))
}

func chatCount(v gjson.Result) int {
	if v.Type != gjson.Number || v.Num < 1 || v.Num > 1<<53 {
		return 0
	}
	return int(v.Num)
}

func chatReadMessages(array gjson.Result) (messages []thread.Message, system []prompt.System, err error) {
	d := chatReader{names: map[string]string{}}
	i, leading := -1, true
	var room rawjson.Fields // of all elements in turn
	array.ForEach(func(_, v gjson.Result) bool {
		i++
		e := chatElement{Fields: room[:0]}
		if err = e.read(v, i); err != nil {
			return false
		}
		room = e.Fields
		if leading = leading && e.isSystem(); leading {
			m := thread.Message{Role: thread.System, Parts: chatContent(e.Get("content"))}
			if leading = !ourform.IsSummary(&m); leading {
				from := chatSource(v.Raw)
				for _, part := range m.Parts { // the last mark counts
					from.Cache = cmp.Or(part.From().Cache, from.Cache)
				}
				system = append(system, prompt.System{Text: m.Text(), Role: e.role, Source: from})
				return true
			}
		}
		m := d.message(&e)
		m.Frame = thread.NewFrame(wire.Chat, v.Raw, i-len(system), 1, 1)
		messages = append(messages, m)
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	return messages, system, nil
}

// chatError is a format error at a JSON path of the body.
func chatError(path, format string, args ...any) error {
	return fmt.Errorf("openai chat: %s: %s: %w", path, fmt.Sprintf(format, args...), wire.ErrFormat)
}

func chatPath(i int) string { return "messages[" + strconv.Itoa(i) + "]" }
