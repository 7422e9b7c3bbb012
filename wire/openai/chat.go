package openai

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Chat is the codec of POST /v1/chat/completions, as OpenAI and the many
// compatible servers take it. It implements wire.Codec. The zero value is
// ready to use and safe for concurrent use.
//
// How a body maps to a prompt:
//   - The leading run of system and developer messages is Prompt.System; later
//     ones are messages of role thread.System. Every other element is one
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
	root, err := chatRoot(doc, '{', "a JSON object")
	if err != nil {
		return nil, err
	}
	f, err := chatReadFields(root)
	if err != nil {
		return nil, err
	}
	if !f.messages.IsArray() {
		return nil, chatError("messages", "missing or not an array")
	}
	messages, system, err := chatReadMessages(f.messages)
	if err != nil {
		return nil, err
	}
	p := &prompt.Prompt{
		Model:     f.model.Str,
		System:    system,
		Tools:     f.readTools(),
		Messages:  messages,
		MaxOutput: f.maxOutput(),
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
	root, err := chatRoot(array, '[', "a JSON array")
	if err != nil {
		return nil, nil, err
	}
	return chatReadMessages(root)
}

// chatFields are the fields of a body that the codec reads; the rest is kept
// as it is.
type chatFields struct {
	model, messages, tools, functions gjson.Result
	maxCompletion, maxTokens          gjson.Result
}

func (f *chatFields) field(name string) *gjson.Result {
	switch name {
	case "model":
		return &f.model
	case "messages":
		return &f.messages
	case "tools":
		return &f.tools
	case "functions":
		return &f.functions
	case "max_completion_tokens":
		return &f.maxCompletion
	case "max_tokens":
		return &f.maxTokens
	}
	return nil
}

func chatReadFields(root gjson.Result) (f chatFields, err error) {
	root.ForEach(func(key, value gjson.Result) bool {
		at := f.field(key.Str)
		if at == nil {
			return true
		}
		if at.Exists() {
			err = chatError(key.Str, "given twice; send it once")
			return false
		}
		*at = value
		return true
	})
	return f, err
}

// maxOutput reads max_completion_tokens, or else the older max_tokens.
func (f *chatFields) maxOutput() int {
	if n := chatCount(f.maxCompletion); n > 0 {
		return n
	}
	return chatCount(f.maxTokens)
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
	array.ForEach(func(_, v gjson.Result) bool {
		i++
		var e chatElement
		if err = e.read(v, i); err != nil {
			return false
		}
		if leading = leading && e.isSystem(); leading {
			system = append(system, prompt.System{
				Text: e.text(), Role: e.role,
				Source: thread.Source{API: wire.Chat, Raw: v.Raw, Cache: e.cache()},
			})
			return true
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

func chatPath(i int) string { return "messages[" + strconv.Itoa(i) + "]" }
