package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
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

// chatReadMedia reads the payload of an image_url, input_audio or file part. It is false if
// the payload has no content.
func chatReadMedia(kind string, v gjson.Result) (m thread.Media, ok bool) {
	switch kind {
	case "image_url":
		m.Type = thread.Image
		url := v.Str // some servers take the bare string
		if v.IsObject() {
			url, m.Detail = v.Get("url").Str, v.Get("detail").Str
		}
		if m.MIME, m.Data, ok = media.ParseDataURL(url); !ok {
			m.URL = url
		}
	case "input_audio":
		m.Type = thread.Audio
		m.Data = v.Get("data").Str
		if f := v.Get("format").Str; f == "mp3" {
			m.MIME = "audio/mpeg"
		} else if f != "" {
			m.MIME = "audio/" + f
		}
	case "file":
		m.Type = thread.File
		m.Name, m.FileID = v.Get("filename").Str, v.Get("file_id").Str
		if m.FileID == "" {
			data := v.Get("file_data").Str
			if m.MIME, m.Data, ok = media.ParseDataURL(data); !ok {
				m.Data = data
			}
		}
		if m.MIME == "application/pdf" || m.MIME == "" && strings.HasSuffix(strings.ToLower(m.Name), ".pdf") {
			m.Type = thread.Document
		}
	}
	return m, m.Data != "" || m.URL != "" || m.FileID != ""
}

// chatAudio are the formats of audio that the API takes.
var chatAudio = map[string]string{"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}

// chatMedia writes a media part for a user message, the only place for media in this API. It
// is "" if the API has no form for it: other providers' file ids, videos, documents by URL,
// audio other than wav and mp3.
func chatMedia(m thread.Media) string {
	ours := m.API == wire.Chat || m.API == wire.Responses || m.API == ""
	file := m.Type == thread.Document || m.Type == thread.File
	kind, o := "file", new(rawjson.Object)
	switch {
	case m.Type == thread.Image && (m.URL != "" || m.Data != "" && strings.HasPrefix(m.MIME, "image/")):
		kind = "image_url"
		o.Str("url", cmp.Or(m.URL, media.DataURL(m.MIME, m.Data)))
		if m.Detail == "auto" || m.Detail == "low" || m.Detail == "high" {
			o.Str("detail", m.Detail)
		}
	case m.Type == thread.Audio && m.Data != "" && chatAudio[m.MIME] != "":
		kind = "input_audio"
		o.Str("data", m.Data).Str("format", chatAudio[m.MIME])
	case file && m.Data != "" && m.MIME != "":
		// OpenAI refuses file_data without a name.
		o.Str("filename", cmp.Or(m.Name, "file")).Str("file_data", media.DataURL(m.MIME, m.Data))
	case file && m.FileID != "" && ours:
		o.Str("file_id", m.FileID)
	default:
		return ""
	}
	return rawjson.NewTypedObject(kind).Raw(kind, o.String()).String()
}
