package anthropic

import (
	"slices"
	"strings"

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
		if text, ok := part.(thread.Text); ok && !ours(text.Source) {
			switch {
			case e.lowered(m) && !blank(text.Text):
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

// block writes one part, or nothing where the API has no place for it.
func (e *encoder) block(part thread.Part, role thread.Role) string {
	switch p := part.(type) {
	case thread.Text:
		switch {
		case blank(p.Text):
			return ""
		case ours(p.Source):
			return asBlock(p.Raw)
		}
		return textBlock(p.Text)
	case thread.Reasoning:
		return reasoning(p)
	case thread.Media:
		if ours(p.Source) {
			return p.Raw
		}
		return media(p, role != thread.Assistant)
	case thread.ToolCall:
		id := e.names.call(p.ID, ours(p.Source))
		if ours(p.Source) {
			return p.Raw
		}
		return rawjson.Typed("tool_use").Str("id", id).Str("name", e.tools.of(p.Name)).
			Raw("input", rawjson.AsObject(p.Arguments)).String()
	case thread.ToolResult:
		return e.result(p)
	case thread.Opaque:
		if ours(p.Source) {
			return p.Raw
		}
	}
	return ""
}

// reasoning is sent only to the API that sealed it.
func reasoning(p thread.Reasoning) string {
	switch {
	case p.API != wire.Anthropic:
		return ""
	case p.Raw != "":
		return p.Raw
	case p.Signature == "":
		return ""
	}
	return rawjson.Typed("thinking").Str("thinking", p.Text).Str("signature", p.Signature).String()
}

func (e *encoder) result(p thread.ToolResult) string {
	id := e.names.result(p.CallID)
	if ours(p.Source) && id == p.CallID {
		return p.Raw
	}
	o := rawjson.Typed("tool_result").Str("tool_use_id", id)
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

// content writes what a tool gave back: a string for a single text, else
// blocks. It is empty when there is nothing to send. A failed result may hold
// text only.
func (e *encoder) content(parts []thread.Part, failed bool) string {
	var blocks []string
	for _, part := range parts {
		if failed {
			part = asText(part)
		}
		if raw := e.block(part, thread.Tool); raw != "" {
			blocks = append(blocks, raw)
		}
	}
	if len(blocks) == 0 {
		for _, part := range parts {
			if o, ok := part.(thread.Opaque); ok && !blank(o.Text) {
				return rawjson.Quote(o.Text)
			}
		}
		return ""
	}
	if len(blocks) == 1 && len(parts) == 1 {
		if text, ok := parts[0].(thread.Text); ok {
			if ours(text.Source) && strings.HasPrefix(text.Raw, `"`) {
				return text.Raw
			}
			if !ours(text.Source) {
				return rawjson.Quote(text.Text)
			}
		}
	}
	return rawjson.Array(blocks)
}

// asText puts words in place of what is no text.
func asText(part thread.Part) thread.Part {
	switch p := part.(type) {
	case thread.Media:
		if p.Text != "" {
			return thread.Text{Text: p.Text}
		}
		return thread.Text{Text: missing(p)}
	case thread.Opaque:
		if ours(p.Source) {
			return thread.Text{Text: p.Text}
		}
	}
	return part
}

// imageTypes are the image formats of the API.
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

// media writes an image or document of another API, or a note in its place
// where this one has no form for it: the model should know that something was
// there.
func media(p thread.Media, allowed bool) string {
	var kind, src string
	web := strings.HasPrefix(p.URL, "https://") || strings.HasPrefix(p.URL, "http://")
	switch {
	case !allowed:
	case p.Text != "" && !blank(p.Text):
		kind, src = "document", rawjson.Typed("text").Str("media_type", "text/plain").Str("data", p.Text).String()
	case p.Data != "" && slices.Contains(imageTypes, p.MIME):
		kind = "image"
	case p.Data != "" && p.MIME == "application/pdf":
		kind = "document"
	case web && p.Type == thread.Image:
		kind, src = "image", rawjson.Typed("url").Str("url", p.URL).String()
	case web && p.Type == thread.Document:
		kind, src = "document", rawjson.Typed("url").Str("url", p.URL).String()
	}
	if kind == "" {
		return textBlock(missing(p))
	}
	if src == "" {
		src = new(rawjson.Object).Str("type", "base64").Str("media_type", p.MIME).Str("data", p.Data).String()
	}
	o := rawjson.Typed(kind).Raw("source", src)
	if kind == "document" && p.Name != "" {
		o.Str("title", p.Name)
	}
	return o.String()
}

func missing(p thread.Media) string {
	what := []string{string(p.Type)}
	for _, s := range []string{p.Name, p.MIME, p.URL} {
		if s != "" && len(s) < 200 {
			what = append(what, s)
		}
	}
	return "(attachment left out: " + strings.TrimSpace(strings.Join(what, " ")) + ")"
}
