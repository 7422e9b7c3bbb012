package anthropic

import (
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// blocks writes the parts of a message that is not sent as a whole frame.
func (e *encoder) blocks(i int) []piece {
	m := &e.p.Messages[i]
	var list []piece
	add := func(raw string) {
		if raw != "" {
			list = append(list, piece{raw, i})
		}
	}
	for k, part := range m.Parts {
		if text, ok := part.(thread.Text); ok && !isOwn(text.Source) {
			switch {
			case e.isLowered(m) && !isBlank(text.Text):
				text.Text = "<system>\n" + text.Text + "\n</system>"
			case m.Role == thread.Assistant && i == len(e.p.Messages)-1 && k == len(m.Parts)-1:
				// A final assistant text that ends in white space is refused.
				text.Text = strings.TrimRight(text.Text, " \t\r\n")
			}
			part = text
		}
		add(e.block(part, m.Role))
	}
	return list
}

// block writes one part; "" if the API has no place for it.
func (e *encoder) block(part thread.Part, role thread.Role) string {
	switch p := part.(type) {
	case thread.Text:
		switch {
		case isBlank(p.Text):
			return ""
		case isOwn(p.Source):
			return asBlock(p.Raw)
		}
		return textBlock(p.Text)
	case thread.Reasoning:
		return reasoningBlock(p)
	case thread.Media:
		if isOwn(p.Source) {
			return p.Raw
		}
		return mediaBlock(p, role != thread.Assistant)
	case thread.ToolCall:
		id := e.calls.call(p.ID, isOwn(p.Source))
		if isOwn(p.Source) {
			return p.Raw
		}
		return rawjson.NewTypedObject("tool_use").Str("id", id).Str("name", e.tools.of(p.Name)).
			Raw("input", rawjson.AsObject(p.Arguments)).String()
	case thread.ToolResult:
		return e.result(p)
	case thread.Opaque:
		if isOwn(p.Source) {
			return p.Raw
		}
	}
	return ""
}

// reasoningBlock is sent only to the API that sealed it.
func reasoningBlock(p thread.Reasoning) string {
	switch {
	case p.API != wire.Anthropic:
		return ""
	case p.Raw != "":
		return p.Raw
	case p.Signature == "":
		return ""
	}
	return rawjson.NewTypedObject("thinking").Str("thinking", p.Text).Str("signature", p.Signature).String()
}

func (e *encoder) result(p thread.ToolResult) string {
	id := e.calls.result(p.CallID)
	if isOwn(p.Source) && id == p.CallID {
		return p.Raw
	}
	o := rawjson.NewTypedObject("tool_result").Str("tool_use_id", id)
	failed := p.Outcome == thread.Failure
	switch content := e.content(p.Content, failed); {
	case content != "":
		o.Raw("content", content)
	case failed:
		o.Str("content", emptyText)
	}
	if failed {
		o.Raw("is_error", "true")
	}
	return o.String()
}

// content writes the content of a result: a string for a single text, else blocks; "" when
// there is nothing to send. A failed result may hold text only.
func (e *encoder) content(parts []thread.Part, failed bool) string {
	var blocks []string
	for _, part := range parts {
		if failed {
			part = textFor(part)
		}
		if raw := e.block(part, thread.Tool); raw != "" {
			blocks = append(blocks, raw)
		}
	}
	if len(blocks) == 0 {
		for _, part := range parts {
			if o, ok := part.(thread.Opaque); ok && !isBlank(o.Text) {
				return rawjson.Quote(o.Text)
			}
		}
		return ""
	}
	if len(blocks) == 1 && len(parts) == 1 {
		if text, ok := parts[0].(thread.Text); ok {
			if isOwn(text.Source) && strings.HasPrefix(text.Raw, `"`) {
				return text.Raw
			}
			if !isOwn(text.Source) {
				return rawjson.Quote(text.Text)
			}
		}
	}
	return rawjson.Array(blocks)
}

// textFor turns media and opaque parts into text.
func textFor(part thread.Part) thread.Part {
	switch p := part.(type) {
	case thread.Media:
		return thread.Text{Text: media.Placeholder(p)}
	case thread.Opaque:
		if isOwn(p.Source) {
			return thread.Text{Text: p.Text}
		}
	}
	return part
}

// imageTypes are the image formats of the API.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// mediaBlock writes an image or document of another API, or a placeholder if this one has
// no form for it.
func mediaBlock(p thread.Media, allowed bool) string {
	var kind, src string
	web := strings.HasPrefix(p.URL, "https://") || strings.HasPrefix(p.URL, "http://")
	switch {
	case !allowed:
	case p.Text != "" && !isBlank(p.Text):
		kind, src = "document", rawjson.NewTypedObject("text").Str("media_type", "text/plain").Str("data", p.Text).String()
	case p.Data != "" && slices.Contains(imageTypes, p.MIME):
		kind = "image"
	case p.Data != "" && p.MIME == "application/pdf":
		kind = "document"
	case web && p.Type == thread.Image:
		kind, src = "image", rawjson.NewTypedObject("url").Str("url", p.URL).String()
	case web && p.Type == thread.Document:
		kind, src = "document", rawjson.NewTypedObject("url").Str("url", p.URL).String()
	}
	if kind == "" {
		return textBlock(media.Placeholder(p))
	}
	if src == "" {
		src = new(rawjson.Object).Str("type", "base64").Str("media_type", p.MIME).Str("data", p.Data).String()
	}
	o := rawjson.NewTypedObject(kind).Raw("source", src)
	if kind == "document" && p.Name != "" {
		o.Str("title", p.Name)
	}
	return o.String()
}
