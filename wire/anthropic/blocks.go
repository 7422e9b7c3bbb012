package anthropic

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// block is a content block or a tool, with its members.
type block struct {
	rawjson.Fields
	raw, kind string
}

func readBlock(v gjson.Result) block {
	return newBlock(v, rawjson.FieldsOf(v, make(rawjson.Fields, 0, 8)))
}

func newBlock(v gjson.Result, f rawjson.Fields) block { return block{f, v.Raw, f.Str("type")} }

// source is where the block comes from.
func (b *block) source() thread.Source { return source(b.raw, codec.CacheTTL(b.Get("cache_control"))) }

// text returns a member that is a string, and whether it is one.
func (b *block) text(name string) (string, bool) {
	v := b.Get(name)
	return v.Str, v.Type == gjson.String
}

// part reads a block of a message of the given role. A block that the role cannot have is
// opaque.
func (d *decoder) part(v gjson.Result, role thread.Role) thread.Part {
	taken := len(d.room) // by the block that contains this one
	d.room = rawjson.FieldsOf(v, d.room)
	defer func() { d.room = d.room[:taken] }()
	b := newBlock(v, d.room[taken:])
	switch b.kind {
	case "text":
		if text, ok := b.text("text"); ok {
			return thread.Text{Text: text, Source: b.source()}
		}
	case "image", "document":
		if m, ok := b.media(); ok {
			return m
		}
	case "thinking":
		if text, ok := b.text("thinking"); ok && role == thread.Assistant {
			return thread.Reasoning{Text: text, Signature: b.Str("signature"), Source: b.source()}
		}
	case "redacted_thinking":
		if data, ok := b.text("data"); ok && role == thread.Assistant {
			return thread.Reasoning{Signature: data, Source: b.source()}
		}
	case "tool_use":
		name, named := b.text("name")
		if id := b.Str("id"); id != "" && named && role == thread.Assistant {
			c := thread.ToolCall{ID: id, Name: name, Arguments: b.Get("input").Raw, Parent: hosted.Parent(wire.Anthropic, b.raw), Source: b.source()}
			d.calls[id] = c
			return c
		}
	case "tool_result":
		if id := b.Str("tool_use_id"); id != "" && role == thread.User {
			return d.result(&b, id)
		}
	}
	return b.opaque()
}

func (d *decoder) result(b *block, id string) thread.ToolResult {
	call := d.calls[id]
	r := thread.ToolResult{CallID: id, Tool: call.Name, Program: call.Parent != "", Outcome: thread.Success, Source: b.source()}
	if b.Get("is_error").Type == gjson.True {
		r.Outcome = thread.Failure
	}
	content := b.Get("content")
	if content.Type == gjson.String {
		r.Content = []thread.Part{thread.Text{Text: content.Str, Source: source(content.Raw, "")}}
	}
	if content.IsObject() { // which the API refuses
		r.Content = []thread.Part{d.part(content, thread.Tool)}
	}
	for v := range rawjson.Items(content) {
		r.Content = append(r.Content, d.part(v, thread.Tool))
	}
	return r
}

func (b *block) media() (thread.Media, bool) {
	from := b.Get("source")
	m := thread.Media{Type: thread.MediaType(b.kind), Name: b.Str("title"), MIME: from.Get("media_type").Str, Source: b.source()}
	var field gjson.Result
	switch from.Get("type").Str {
	case "base64":
		field = from.Get("data")
		m.Data = field.Str
	case "url":
		field = from.Get("url")
		m.URL = field.Str
	case "file":
		field = from.Get("file_id")
		m.FileID = field.Str
	case "text":
		field = from.Get("data")
		m.Text = field.Str
	case "content":
		var words []string
		collect(&words, from.Get("content"), readLevels)
		m.Text = strings.Join(words, "\n")
		return m, true
	}
	return m, field.Type == gjson.String
}

// opaque keeps a block as it is, with its readable text.
func (b *block) opaque() thread.Opaque {
	var words []string
	if input := b.Get("input"); input.IsObject() {
		// A call of the provider's own tool: its name and arguments are worth finding.
		words = append(words, strings.TrimSpace(b.Str("name")+" "+input.Raw))
	} else {
		collect(&words, gjson.Parse(b.raw), readLevels)
	}
	return hosted.Mark(thread.Opaque{Kind: b.kind, Text: strings.Join(words, "\n"), Source: b.source()})
}

// readableMembers are the members of vendor blocks that hold text for people. The data of
// a source is text only if the source says so; ids, signatures and encrypted content
// never are.
var readableMembers = scan.WordSet("text title content stdout stderr tool_name error_code url name tool source lines results")

// readLevels is how deep nested blocks are read. Real ones have a few levels, and each
// level costs another scan of the block.
const readLevels = 32

// collect appends the readable strings of a block, in document order.
func collect(words *[]string, v gjson.Result, levels int) {
	switch {
	case levels == 0:
	case v.Type == gjson.String:
		if !isBlank(v.Str) {
			*words = append(*words, v.Str)
		}
	case v.IsArray():
		for item := range rawjson.Items(v) {
			collect(words, item, levels-1)
		}
	case v.IsObject():
		plain := v.Get("type").Str == "text"
		for name, item := range rawjson.Members(v) {
			if readableMembers[name] || plain && name == "data" {
				collect(words, item, levels-1)
			}
		}
	}
}
