// Package anthropic reads and writes request bodies of the Anthropic Messages
// API (POST /v1/messages and /v1/messages/count_tokens), checks them against its
// published rules, and reads its answers.
//
// Decoding keeps the exact bytes of every block, so that a body that nobody
// touched is encoded to the same bytes, and one in which a message was replaced
// differs in that message only. The validator knows nothing of the codec.
package anthropic

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Codec is the wire.Codec of the Messages API. The zero value is ready; it has
// no state and is safe for concurrent use.
type Codec struct{}

var _ wire.Codec = Codec{}

// API returns "anthropic".
func (Codec) API() string { return wire.Anthropic }

// Decode reads a request body. Each tool_result block of a user message becomes
// a tool message of its own, the blocks between them user messages; all
// messages cut from one share a frame. Blocks that are not known, or that lack
// what their type demands, become opaque parts.
//
// The error wraps wire.ErrFormat and names the JSON path.
func (Codec) Decode(body []byte) (*prompt.Prompt, error) {
	doc := string(body)
	if err := rawjson.Check(doc); err != nil {
		return nil, fmt.Errorf("anthropic: %w: %w", wire.ErrFormat, err)
	}
	top, err := openDocument(doc)
	if err != nil {
		return nil, err
	}
	p := &prompt.Prompt{Model: top.Get("model").Str, MaxOutput: maxTokens(top)}
	if p.System, err = decodeSystem(top.Get("system")); err != nil {
		return nil, err
	}
	if p.Tools, err = decodeTools(top.Get("tools")); err != nil {
		return nil, err
	}
	d := decoder{names: map[string]string{}}
	elements := top.Get("messages").Array()
	p.Messages = make([]thread.Message, 0, len(elements)+len(elements)/2)
	for i, element := range elements {
		if p.Messages, err = d.message(p.Messages, element, i); err != nil {
			return nil, fmt.Errorf("messages[%d]%w", i, err)
		}
	}
	p.Source = &prompt.Source{
		API: wire.Anthropic, Body: doc,
		System: len(p.System), Tools: len(p.Tools), Elements: len(elements),
	}
	return p, nil
}

// DecodeMessage reads one element of the messages array, as transcripts hold
// them. The names of the tools that results answer are not known here and left
// empty. The error wraps wire.ErrFormat.
func DecodeMessage(raw string) ([]thread.Message, error) {
	if err := rawjson.Check(raw); err != nil {
		return nil, fmt.Errorf("anthropic: message: %w: %w", wire.ErrFormat, err)
	}
	d := decoder{names: map[string]string{}}
	messages, err := d.message(nil, gjson.Parse(strings.TrimSpace(raw)), 0)
	if err != nil {
		return nil, fmt.Errorf("message%w", err)
	}
	return messages, nil
}

// openDocument cuts a body that is known to be JSON into its members.
func openDocument(doc string) (*rawjson.Document, error) {
	top, ok := rawjson.Open(doc, nil)
	switch {
	case !ok:
		return nil, fmt.Errorf("anthropic: %w: the body is not a JSON object", wire.ErrFormat)
	case !top.Get("messages").IsArray():
		return nil, fmt.Errorf("anthropic: messages: %w: the array of messages is missing", wire.ErrFormat)
	}
	if name := top.FirstDuplicate("model", "max_tokens", "system", "tools", "messages"); name != "" {
		return nil, fmt.Errorf("anthropic: %s: %w: the body has it twice", name, wire.ErrFormat)
	}
	return top, nil
}

func maxTokens(top *rawjson.Document) int {
	v := top.Get("max_tokens")
	if v.Type != gjson.Number || v.Num != float64(int(v.Num)) || v.Num < 0 {
		return 0
	}
	return int(v.Num)
}

func decodeSystem(v gjson.Result) ([]prompt.System, error) {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return []prompt.System{{Text: v.Str, Role: "system", Source: source(v.Raw, "")}}, nil
	case !v.IsArray():
		return nil, fmt.Errorf("anthropic: system: %w: neither text nor an array of blocks", wire.ErrFormat)
	}
	blocks, bad := rawjson.Objects(v, nil)
	if bad >= 0 {
		return nil, fmt.Errorf("anthropic: system[%d]: %w: not a block", bad, wire.ErrFormat)
	}
	var list []prompt.System
	for _, v := range blocks {
		b := readBlock(v)
		list = append(list, prompt.System{Text: b.Str("text"), Role: "system", Source: b.source()})
	}
	return list, nil
}

func decodeTools(v gjson.Result) ([]prompt.Tool, error) {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, fmt.Errorf("anthropic: tools: %w: not an array", wire.ErrFormat)
	}
	tools, bad := rawjson.Objects(v, nil)
	if bad >= 0 {
		return nil, fmt.Errorf("anthropic: tools[%d]: %w: not a tool", bad, wire.ErrFormat)
	}
	var list []prompt.Tool
	for _, tool := range tools {
		b := readBlock(tool)
		list = append(list, prompt.Tool{Name: b.Str("name"), Description: b.Str("description"), Schema: b.Get("input_schema").Raw, Source: b.source()})
	}
	return list, nil
}

// decoder cuts messages; it remembers the names of the tools that were called.
type decoder struct {
	names map[string]string // of tools, by the ids of their calls
	room  rawjson.Fields    // for the members of the blocks that are being read
	// blocks are those of the message that is being read.
	blocks []gjson.Result
}

// message appends the messages cut from one element. Its errors begin with the
// path below the element.
func (d *decoder) message(to []thread.Message, element gjson.Result, position int) ([]thread.Message, error) {
	if !element.IsObject() {
		return nil, fmt.Errorf(": %w: not a message", wire.ErrFormat)
	}
	f := rawjson.FieldsOf(element, make(rawjson.Fields, 0, 8))
	role, content := f.Str("role"), f.Get("content")
	switch thread.Role(role) {
	case thread.User, thread.Assistant, thread.System:
	default:
		return nil, fmt.Errorf(".role: %w: %q is not user, assistant or system", wire.ErrFormat, role)
	}
	first := len(to)
	add := func(role thread.Role, parts []thread.Part) {
		to = append(to, thread.Message{Role: role, Parts: parts, Index: len(to) - first})
	}
	framed := func() []thread.Message {
		frame := thread.NewFrame(wire.Anthropic, element.Raw, position, 1, len(to)-first)
		for i := range to[first:] {
			to[first+i].Frame = frame
		}
		return to
	}
	switch {
	case content.Type == gjson.String:
		add(thread.Role(role), []thread.Part{thread.Text{Text: content.Str, Source: source(content.Raw, "")}})
		return framed(), nil
	case !content.IsArray():
		return nil, fmt.Errorf(".content: %w: neither text nor an array of blocks", wire.ErrFormat)
	}

	blocks, bad := rawjson.Objects(content, d.blocks)
	if d.blocks = blocks; bad >= 0 {
		return nil, fmt.Errorf(".content[%d]: %w: not a block", bad, wire.ErrFormat)
	}
	var parts []thread.Part
	for _, block := range blocks {
		part := d.part(block, thread.Role(role))
		if result, ok := part.(thread.ToolResult); ok {
			if len(parts) > 0 {
				add(thread.User, parts)
				parts = nil
			}
			add(thread.Tool, []thread.Part{result})
			continue
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 || len(to) == first {
		add(thread.Role(role), parts)
	}
	return framed(), nil
}

func source(raw, cache string) thread.Source {
	return thread.Source{API: wire.Anthropic, Raw: raw, Cache: cache}
}
