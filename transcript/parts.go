package transcript

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// each calls f with the members of an object or the elements of an array, and
// not at all for anything else.
func each(v gjson.Result, f func(key, value gjson.Result) bool) {
	if v.IsObject() || v.IsArray() {
		v.ForEach(f)
	}
}

// text makes the parts of a text; none when it is empty.
func text(s string) []thread.Part {
	if s == "" {
		return nil
	}
	return []thread.Part{thread.Text{Text: s}}
}

// user makes a user message of a text.
func user(s string) thread.Message {
	return thread.Message{Role: thread.User, Parts: text(s)}
}

// answer makes a tool message.
func answer(r thread.ToolResult) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{r}}
}

// opaque keeps a block that is not understood, with whatever in it can be read.
func opaque(block gjson.Result) thread.Part {
	return thread.Opaque{
		Kind: block.Get("type").String(), Text: block.Get("text").String(),
		Source: thread.Source{Raw: block.Raw},
	}
}

// arguments gives the JSON of a call's arguments, which some write as a JSON
// text inside a string.
func arguments(v gjson.Result) string {
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return "{}"
	case v.Type == gjson.String:
		return v.Str
	}
	return strings.TrimSpace(v.Raw)
}

// dataURL reads a URL that may hold its data itself.
func dataURL(url string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	mime, encoding, _ := strings.Cut(head, ";")
	return mime, data, strings.HasSuffix(encoding, "base64")
}

// media makes the part of a file from its type, or the class of its type, and
// where it is: a URL, a data URL or base64.
func media(mime, where string) thread.Media {
	m := thread.Media{MIME: mime}
	if inURL, data, ok := dataURL(where); ok {
		m.Data = data
		if !strings.Contains(mime, "/") {
			m.MIME = inURL
		}
	} else if strings.Contains(where, "://") {
		m.URL = where
	} else {
		m.Data = where
	}
	m.Type = mediaType(m.MIME)
	if !strings.Contains(m.MIME, "/") {
		m.MIME = ""
	}
	return m
}

func mediaType(mime string) thread.MediaType {
	switch {
	case strings.HasPrefix(mime, "image"):
		return thread.Image
	case strings.HasPrefix(mime, "audio"):
		return thread.Audio
	case strings.HasPrefix(mime, "video"):
		return thread.Video
	case mime == "application/pdf", strings.HasPrefix(mime, "text/"):
		return thread.Document
	}
	return thread.File
}

// structured gives a JSON value as the canonical data of a result, and as text.
func structured(v gjson.Result) (data string, content []thread.Part) {
	if v.Type == gjson.String {
		return "", text(v.Str)
	}
	if !v.Exists() || v.Type == gjson.Null {
		return "", nil
	}
	data, _ = canonjson.Canonical(v.Raw)
	return data, text(v.Raw)
}
