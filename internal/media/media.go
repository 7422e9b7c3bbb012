// Package media knows what images and files have in common across the APIs: data URLs,
// classes of MIME types, and the note that stands in for media an API cannot take.
package media

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// ParseDataURL splits a base64 data URL. ok is false for any other URL, and for one
// without data.
func ParseDataURL(url string) (mime, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, _ := strings.Cut(rest, ",")
	mime, ok = strings.CutSuffix(head, ";base64")
	if !ok || data == "" {
		return "", "", false
	}
	mime, _, _ = strings.Cut(mime, ";")
	return mime, data, true
}

// DataURL writes base64 data as a data URL.
func DataURL(mime, data string) string { return "data:" + mime + ";base64," + data }

// ClassOf returns the class of a MIME type, or of the first half of one ("image").
func ClassOf(mime string) thread.MediaType {
	switch class, sub, _ := strings.Cut(mime, "/"); {
	case class == "image", class == "audio", class == "video":
		return thread.MediaType(class)
	case mime == "application/pdf", class == "text" && sub != "":
		return thread.Document
	}
	return thread.File
}

// Placeholder is the text that stands for media where an API takes only text: the
// content of a plain-text document, or a note such as "[image: image/png, 5120 bytes]".
// The model should know that something was there.
func Placeholder(m thread.Media) string {
	if strings.TrimSpace(m.Text) != "" { // APIs refuse a blank text
		return m.Text
	}
	var facts []string
	for _, fact := range []string{m.Name, m.MIME, m.URL} {
		if fact != "" && len(fact) < 200 && !strings.HasPrefix(fact, "data:") {
			facts = append(facts, fact)
		}
	}
	if m.Data != "" {
		size := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(m.Data, "=")))
		facts = append(facts, fmt.Sprintf("%d bytes", size))
	}
	if len(facts) == 0 {
		facts = []string{"not available"}
	}
	return "[" + string(m.Type) + ": " + strings.Join(facts, ", ") + "]"
}
