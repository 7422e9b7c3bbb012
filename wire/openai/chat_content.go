package openai

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// chatPiece is a piece of content: text, or the JSON of a part.
type chatPiece struct{ text, raw string }

// chatContentJSON is the content of a message: a text, or an array of parts.
type chatContentJSON struct{ text, array string }

func (c chatContentJSON) empty() bool { return c == chatContentJSON{} }

// writeTo adds the content to a message.
func (c chatContentJSON) writeTo(o *rawjson.Object) *rawjson.Object {
	if c.array != "" {
		return o.Raw("content", c.array)
	}
	return o.Str("content", c.text)
}

// chatContentOf is the content of a message of the role: a text if all parts are text, else
// an array.
func chatContentOf(parts []thread.Part, role thread.Role) chatContentJSON {
	var pieces []chatPiece
	array := false
	for _, part := range parts {
		if piece := chatPieceOf(part, role); piece != (chatPiece{}) {
			pieces = append(pieces, piece)
			array = array || piece.raw != ""
		}
	}
	list := make([]string, len(pieces))
	for i, piece := range pieces {
		switch {
		case !array:
			list[i] = piece.text
		case piece.raw != "":
			list[i] = piece.raw
		default:
			list[i] = rawjson.NewTypedObject("text").Str("text", piece.text).String()
		}
	}
	if array {
		return chatContentJSON{array: rawjson.Array(list)}
	}
	return chatContentJSON{text: strings.Join(list, "\n")}
}

func chatPieceOf(part thread.Part, role thread.Role) chatPiece {
	if src := part.From(); isChatSource(src) {
		_, beside := chatMemberOf(part)
		_, call := part.(thread.ToolCall)
		o, opaque := part.(thread.Opaque)
		if beside || call || opaque && o.Kind == "tool_calls" {
			return chatPiece{}
		}
		return chatPiece{raw: src.Raw}
	}
	switch p := part.(type) {
	case thread.Text:
		return chatPiece{text: p.Text}
	case thread.Media:
		if role == thread.User && p.Text == "" {
			if raw := chatMedia(p); raw != "" {
				return chatPiece{raw: raw}
			}
		}
		return chatPiece{text: media.Placeholder(p)}
	case thread.Opaque:
		if role == thread.Tool { // a result must say what the tool said
			return chatPiece{text: p.Text}
		}
	}
	return chatPiece{}
}
