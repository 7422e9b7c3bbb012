package openai

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chatParts is the content of a message about to be written: texts, and parts
// that have JSON already.
type chatParts struct {
	list  []chatPiece
	array bool // some part is not plain text
}

type chatPiece struct{ text, raw string }

// chatContentOf collects what a message of the role may hold as content.
func chatContentOf(parts []thread.Part, role thread.Role) (c chatParts) {
	for _, part := range parts {
		if src := part.From(); src.API == wire.Chat && src.Raw != "" {
			_, beside := chatMemberOf(part)
			_, call := part.(thread.ToolCall)
			o, opaque := part.(thread.Opaque)
			if !beside && !call && !(opaque && o.Kind == "tool_calls") {
				c.list = append(c.list, chatPiece{raw: src.Raw})
				c.array = true
			}
			continue
		}
		switch p := part.(type) {
		case thread.Text:
			c.text(p.Text)
		case thread.Media:
			c.media(p, role)
		case thread.Opaque:
			if role == thread.Tool { // a result must say what the tool said
				c.text(p.Text)
			}
		}
	}
	return c
}

func (c *chatParts) text(text string) {
	if text != "" {
		c.list = append(c.list, chatPiece{text: text})
	}
}

func (c *chatParts) media(m thread.Media, role thread.Role) {
	if role == thread.User && m.Text == "" {
		if raw, ok := chatAppendMedia(nil, m); ok {
			c.list = append(c.list, chatPiece{raw: string(raw)})
			c.array = true
			return
		}
	}
	c.text(chatMediaText(m))
}

func (c *chatParts) empty() bool { return len(c.list) == 0 }

// append writes a string when everything is text, else an array of parts.
func (c *chatParts) append(b []byte) []byte {
	if !c.array {
		if len(c.list) == 1 { // nothing to join, nothing to copy
			return rawjson.AppendString(b, c.list[0].text)
		}
		var joined strings.Builder
		for i, p := range c.list {
			if i > 0 {
				joined.WriteByte('\n')
			}
			joined.WriteString(p.text)
		}
		return rawjson.AppendString(b, joined.String())
	}
	b = append(b, '[')
	for i, p := range c.list {
		if i > 0 {
			b = append(b, ',')
		}
		if p.raw != "" {
			b = append(b, p.raw...)
			continue
		}
		b = chatAppendField(append(b, `{"type":"text"`...), "text", p.text)
		b = append(b, '}')
	}
	return append(b, ']')
}
