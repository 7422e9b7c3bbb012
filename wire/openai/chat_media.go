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
	case m.Type == thread.Audio && m.Data != "" && chatAudioFormat(m.MIME) != "":
		kind = "input_audio"
		o.Str("data", m.Data).Str("format", chatAudioFormat(m.MIME))
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

func chatAudioFormat(mime string) string {
	switch mime {
	case "audio/wav", "audio/x-wav", "audio/wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}
