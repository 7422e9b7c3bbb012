package openai

import (
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// chatPiece is a piece of content: text, or a part that has JSON already.
type chatPiece struct{ text, raw string }

// chatContentOf writes what a message of the role may hold as content: a string when
// everything is text, else an array of parts. It is "" when there is nothing.
func chatContentOf(parts []thread.Part, role thread.Role) (content string, array bool) {
	var pieces []chatPiece
	for _, part := range parts {
		piece := chatPieceOf(part, role)
		if piece != (chatPiece{}) {
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
			list[i] = rawjson.Typed("text").Str("text", piece.text).String()
		}
	}
	switch {
	case len(list) == 0:
		return "", false
	case array:
		return rawjson.Array(list), true
	}
	return rawjson.Quote(strings.Join(list, "\n")), false
}

func chatPieceOf(part thread.Part, role thread.Role) chatPiece {
	if src := part.From(); chatOwn(src) {
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
		return chatPiece{text: chatMediaText(p)}
	case thread.Opaque:
		if role == thread.Tool { // a result must say what the tool said
			return chatPiece{text: p.Text}
		}
	}
	return chatPiece{}
}
