// Package anthropic reads and writes request bodies of the Anthropic Messages
// API (POST /v1/messages and /v1/messages/count_tokens), checks them against its
// published rules, and reads its answers.
//
// Decoding keeps the exact bytes of every block. An untouched body is encoded to the same
// bytes, and one with a replaced message differs in that message only.
package anthropic

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Codec is the wire.Codec of the Messages API. The zero value is ready to use and safe for
// concurrent use.
type Codec struct{}

var _ wire.Codec = Codec{}

// API returns "anthropic".
func (Codec) API() string { return wire.Anthropic }

// Decode reads a request body. Each tool_result block of a user message becomes a tool
// message of its own, and the blocks between them become user messages; all of them share
// one frame. So do the messages of an answer with several calls that the provider ran: one for
// each, with its result. Unknown blocks, and blocks that lack what their type demands, become
// opaque parts.
//
// The error wraps wire.ErrFormat and names the JSON path.
func (Codec) Decode(body string) (*prompt.Prompt, error) {
	top, err := format.Read(body, openDocument)
	if err != nil {
		return nil, err
	}
	p := &prompt.Prompt{Model: top.Get("model").Str, MaxOutput: rawjson.Count(top.Get("max_tokens"))}
	if p.System, err = decodeSystem(top.Get("system")); err != nil {
		return nil, err
	}
	if p.Tools, err = decodeTools(top.Get("tools")); err != nil {
		return nil, err
	}
	d := decoder{calls: map[string]thread.ToolCall{}}
	elements := top.Get("messages").Array()
	p.Messages = make([]thread.Message, 0, len(elements)+len(elements)/2)
	for i, element := range elements {
		if p.Messages, err = d.message(p.Messages, element, i); err != nil {
			return nil, err
		}
	}
	p.Messages = hosted.Split(p.Messages)
	p.Source = &prompt.Source{
		API: wire.Anthropic, Body: body,
		System: len(p.System), Tools: len(p.Tools), Elements: len(elements),
	}
	return p, nil
}

// DecodeMessage reads one element of the messages array, as transcripts hold it. Results
// have no tool name, because their calls are not known here. The error wraps
// wire.ErrFormat.
func DecodeMessage(raw string) ([]thread.Message, error) {
	if err := format.Check(raw); err != nil {
		return nil, err
	}
	d := decoder{calls: map[string]thread.ToolCall{}}
	return d.message(nil, gjson.Parse(strings.TrimSpace(raw)), 0)
}

// format reports bodies that are not requests of this API.
const format = codec.Format("anthropic")

// openDocument opens a body that is known to be JSON.
func openDocument(doc string) (*rawjson.Document, error) {
	top, err := format.Open(doc, nil, "model", "max_tokens", "system", "tools", "messages")
	if err == nil && !top.Get("messages").IsArray() {
		return nil, format.Errorf("messages", "want an array of messages")
	}
	return top, err
}

func decodeSystem(v gjson.Result) (list []prompt.System, err error) {
	if v.Type == gjson.String {
		return []prompt.System{{Text: v.Str, Role: "system", Source: source(v.Raw, "")}}, nil
	}
	blocks, err := format.Objects("system", v, "a block")
	for _, v := range blocks {
		b := readBlock(v)
		list = append(list, prompt.System{Text: b.Str("text"), Role: "system", Source: b.source()})
	}
	return list, err
}

func decodeTools(v gjson.Result) (list []prompt.Tool, err error) {
	tools, err := format.Objects("tools", v, "a tool")
	for _, tool := range tools {
		b := readBlock(tool)
		list = append(list, prompt.Tool{Name: b.Str("name"), Description: b.Str("description"), Schema: b.Get("input_schema").Raw, Source: b.source()})
	}
	return list, err
}

// decoder splits elements into messages and remembers the calls.
type decoder struct {
	calls map[string]thread.ToolCall // by their ids
	room  rawjson.Fields             // for the members of the blocks that are being read
	// blocks are those of the message that is being read.
	blocks []gjson.Result
}

// message appends the messages that one element holds.
func (d *decoder) message(to []thread.Message, element gjson.Result, position int) ([]thread.Message, error) {
	fail := func(below, problem string) error {
		return format.Errorf("messages["+strconv.Itoa(position)+"]"+below, "%s", problem)
	}
	if !element.IsObject() {
		return nil, fail("", "want a message")
	}
	f := rawjson.FieldsOf(element, make(rawjson.Fields, 0, 8))
	role, content := thread.Role(f.Str("role")), f.Get("content")
	if role != thread.User && role != thread.Assistant && role != thread.System {
		return nil, fail(".role", fmt.Sprintf("want user, assistant or system, have %q", role))
	}
	if content.Type != gjson.String && !content.IsArray() {
		return nil, fail(".content", "want text or an array of blocks")
	}
	blocks, bad := rawjson.Objects(content, d.blocks)
	if d.blocks = blocks; bad >= 0 {
		return nil, fail(fmt.Sprintf(".content[%d]", bad), "want a block")
	}
	first := len(to)
	var parts []thread.Part
	if content.Type == gjson.String {
		parts = []thread.Part{thread.Text{Text: content.Str, Source: source(content.Raw, "")}}
	}
	for _, block := range blocks {
		part := d.part(block, role)
		result, ok := part.(thread.ToolResult)
		if !ok {
			parts = append(parts, part)
			continue
		}
		if len(parts) > 0 {
			to = append(to, thread.Message{Role: thread.User, Parts: parts})
			parts = nil
		}
		to = append(to, thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
	}
	if len(parts) > 0 || len(to) == first {
		to = append(to, thread.Message{Role: role, Parts: parts})
	}
	frame := thread.NewFrame(wire.Anthropic, element.Raw, position, 1, len(to)-first)
	for i := range to[first:] {
		to[first+i].Frame, to[first+i].Index = frame, i
	}
	return to, nil
}

func source(raw, cache string) thread.Source {
	return thread.Source{API: wire.Anthropic, Raw: raw, Cache: cache}
}
