package anthropic

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// block is one content block, its members looked up once. Where a member
// stands twice the last one counts, as with the usual JSON readers.
type block struct {
	raw                              string
	kind                             string
	text, thinking, signature, data  gjson.Result
	id, name, input, callID, content gjson.Result
	isError, source, title, mark     gjson.Result
}

func readBlock(v gjson.Result) block {
	b := block{raw: v.Raw}
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "type":
			b.kind = value.Str
		case "text":
			b.text = value
		case "thinking":
			b.thinking = value
		case "signature":
			b.signature = value
		case "data":
			b.data = value
		case "id":
			b.id = value
		case "name":
			b.name = value
		case "input":
			b.input = value
		case "tool_use_id":
			b.callID = value
		case "content":
			b.content = value
		case "is_error":
			b.isError = value
		case "source":
			b.source = value
		case "title":
			b.title = value
		case "cache_control":
			b.mark = value
		}
		return true
	})
	return b
}

// cache is the time to live of the block's cache mark, or empty.
func (b *block) cache() string { return ttl(b.mark) }

// ttl reads a cache_control member. The provider's default is five minutes.
func ttl(mark gjson.Result) string {
	if !mark.IsObject() {
		return ""
	}
	if t := mark.Get("ttl"); t.Type == gjson.String && t.Str != "" {
		return t.Str
	}
	return "5m"
}

// part reads a block of a message of the given role. A block that its role
// cannot have is opaque: it is kept where it is and means nothing to us.
func (d *decoder) part(v gjson.Result, role thread.Role) thread.Part {
	b := readBlock(v)
	src := source(b.raw, b.cache())
	switch b.kind {
	case "text":
		if text, ok := str(b.text); ok {
			return thread.Text{Text: text, Source: src}
		}
	case "image", "document":
		if m, ok := b.media(); ok {
			return m
		}
	case "thinking":
		if text, ok := str(b.thinking); ok && role == thread.Assistant {
			return thread.Reasoning{Text: text, Signature: b.signature.Str, Source: src}
		}
	case "redacted_thinking":
		if data, ok := str(b.data); ok && role == thread.Assistant {
			return thread.Reasoning{Signature: data, Source: src}
		}
	case "tool_use":
		id, named := str(b.id)
		if named && id != "" && b.name.Type == gjson.String && role == thread.Assistant {
			d.names[id] = b.name.Str
			return thread.ToolCall{ID: id, Name: b.name.Str, Arguments: b.input.Raw, Source: src}
		}
	case "tool_result":
		if id, ok := str(b.callID); ok && id != "" && role == thread.User {
			return d.result(&b, id)
		}
	}
	return b.opaque()
}

func (d *decoder) result(b *block, id string) thread.ToolResult {
	r := thread.ToolResult{
		CallID: id, Tool: d.names[id], Outcome: thread.Success,
		Source: source(b.raw, b.cache()),
	}
	if b.isError.Type == gjson.True {
		r.Outcome = thread.Failure
	}
	switch {
	case b.content.Type == gjson.String:
		r.Content = []thread.Part{thread.Text{Text: b.content.Str, Source: source(b.content.Raw, "")}}
	case b.content.IsArray():
		b.content.ForEach(func(_, v gjson.Result) bool {
			r.Content = append(r.Content, nested(v))
			return true
		})
	}
	return r
}

// nested reads a block inside a tool result.
func nested(v gjson.Result) thread.Part {
	b := readBlock(v)
	switch b.kind {
	case "text":
		if text, ok := str(b.text); ok {
			return thread.Text{Text: text, Source: source(b.raw, b.cache())}
		}
	case "image", "document":
		if m, ok := b.media(); ok {
			return m
		}
	}
	return b.opaque()
}

func (b *block) media() (thread.Media, bool) {
	m := thread.Media{Type: thread.MediaType(b.kind), Name: b.title.Str, Source: source(b.raw, b.cache())}
	m.MIME = b.source.Get("media_type").Str
	var field gjson.Result
	switch b.source.Get("type").Str {
	case "base64":
		field = b.source.Get("data")
		m.Data = field.Str
	case "url":
		field = b.source.Get("url")
		m.URL = field.Str
	case "file":
		field = b.source.Get("file_id")
		m.FileID = field.Str
	case "text":
		field = b.source.Get("data")
		m.Text = field.Str
	case "content":
		var words []string
		collect(&words, b.source.Get("content"), readLevels)
		m.Text = strings.Join(words, "\n")
		return m, true
	}
	return m, field.Type == gjson.String
}

// opaque keeps a block as it is, with the text that a person could read in it.
func (b *block) opaque() thread.Opaque {
	var words []string
	if b.input.IsObject() {
		// A call that the provider runs itself: its name and arguments are what
		// there is to search for.
		words = append(words, strings.TrimSpace(b.name.Str+" "+b.input.Raw))
	} else {
		collect(&words, gjson.Parse(b.raw), readLevels)
	}
	return thread.Opaque{Kind: b.kind, Text: strings.Join(words, "\n"), Source: source(b.raw, b.cache())}
}

// readable are the members of vendor blocks that hold text for people. Data of
// a source is text only when the source says so; ids, seals and encrypted
// content are never text.
var readable = map[string]bool{
	"text": true, "title": true, "content": true, "stdout": true, "stderr": true,
	"tool_name": true, "error_code": true, "url": true, "name": true, "tool": true,
	"source": true, "lines": true, "results": true,
}

// readLevels is how deep a block is gone into. Real ones hold blocks that hold a
// list; at each level the rest of the block is stepped over again.
const readLevels = 32

// collect gathers the readable strings of a block, in document order, so many
// levels deep.
func collect(words *[]string, v gjson.Result, levels int) {
	switch {
	case levels == 0:
	case v.Type == gjson.String:
		if !blank(v.Str) {
			*words = append(*words, v.Str)
		}
	case v.IsArray():
		v.ForEach(func(_, item gjson.Result) bool {
			collect(words, item, levels-1)
			return true
		})
	case v.IsObject():
		plain := v.Get("type").Str == "text"
		v.ForEach(func(key, item gjson.Result) bool {
			if readable[key.Str] || plain && key.Str == "data" {
				collect(words, item, levels-1)
			}
			return true
		})
	}
}
