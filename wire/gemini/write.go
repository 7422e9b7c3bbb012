package gemini

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// skipSignature is the documented value (Gemini API, "Thought signatures") for a call that
// no Gemini model made: Gemini 3 refuses an unsigned first call of a step in the current
// turn. Calls of earlier turns get it too, because dropping it when the turn ends would
// change the cached prefix.
const skipSignature = "skip_thought_signature_validator"

// writer writes messages as contents.
type writer struct {
	names map[string]string // call id → name on the wire
}

func content(role string, parts []string) string {
	return `{"role":"` + role + `","parts":` + rawjson.Array(parts) + `}`
}

func textPart(text string) string { return new(rawjson.Object).Str("text", text).String() }

// hasContent reports whether a message has anything that can be sent.
func (w *writer) hasContent(m *thread.Message) bool {
	if m.Role == thread.System {
		return m.Text() != ""
	}
	return slices.ContainsFunc(m.Parts, isSendable)
}

// isSendable reports whether a part can be sent.
func isSendable(part thread.Part) bool {
	if isOwn(part.From()) {
		return true
	}
	switch part := part.(type) {
	case thread.Text:
		return part.Text != ""
	case thread.Media, thread.ToolCall, thread.ToolResult:
		return true
	}
	return false
}

// part appends the JSON of a part. A part that was read from this API keeps its bytes;
// another provider's reasoning and opaque parts are left out.
func (w *writer) part(parts []string, part thread.Part) []string {
	if !isSendable(part) {
		return parts
	}
	if from := part.From(); isOwn(from) {
		return append(parts, from.Raw)
	}
	switch part := part.(type) {
	case thread.Text:
		return append(parts, textPart(part.Text))
	case thread.Media:
		return append(parts, mediaPart(part))
	case thread.ToolCall:
		return append(parts, w.call(part, false))
	case thread.ToolResult:
		return append(parts, w.result(part))
	}
	return parts
}

// wireName returns the name that a call is sent with.
func wireName(c thread.ToolCall) string {
	if isOwn(c.Source) {
		return c.Name
	}
	return functionName(c.Name)
}

// call writes a call; signed asks for a signature on it.
func (w *writer) call(c thread.ToolCall, signed bool) string {
	if isOwn(c.Source) {
		return c.Raw
	}
	o := new(rawjson.Object)
	if c.ID != "" && !thread.IsLocalID(c.ID) {
		o.Str("id", c.ID)
	}
	o.Str("name", wireName(c)).Raw("args", rawjson.AsObject(strings.TrimSpace(c.Arguments)))
	signature := ""
	if c.API == "" || c.API == wire.Gemini {
		signature = c.Signature
	}
	if signature == "" && signed {
		signature = skipSignature
	}
	call := new(rawjson.Object).Raw("functionCall", o.String())
	if signature != "" {
		call.Str("thoughtSignature", signature)
	}
	return call.String()
}

// result writes the response to a call. The structured form is sent if it says the same as
// the content; content that was shortened or cleared since then counts more.
func (w *writer) result(r thread.ToolResult) string {
	name, ok := w.names[r.CallID]
	if !ok {
		name = functionName(r.Tool)
	}
	o := new(rawjson.Object)
	if r.CallID != "" && !thread.IsLocalID(r.CallID) {
		o.Str("id", r.CallID)
	}
	o.Str("name", name)
	switch text := r.Text(); {
	case sameContent(r, text):
		o.Raw("response", r.Structured)
	case r.Outcome == thread.Failure:
		o.Raw("response", new(rawjson.Object).Str("error", text).String())
	default:
		o.Raw("response", new(rawjson.Object).Str("output", text).String())
	}
	if nested := nestedMedia(r.Content); len(nested) > 0 {
		o.Raw("parts", rawjson.Array(nested))
	}
	return new(rawjson.Object).Raw("functionResponse", o.String()).String()
}

// sameContent reports whether the structured form of a result can be sent in place of its
// text: it is an object that says the same, and is a failure if the result is one.
func sameContent(r thread.ToolResult, text string) bool {
	if !rawjson.IsObject(r.Structured) {
		return false
	}
	held, failed := readResponse(gjson.Parse(r.Structured))
	if failed != (r.Outcome == thread.Failure) {
		return false
	}
	if held == text {
		return true
	}
	said, ok := canonjson.Canonical(text)
	structured, _ := canonjson.Canonical(r.Structured)
	return ok && said == structured
}

// nestedMedia writes the media inside a result: inline data and files, nothing else.
func nestedMedia(content []thread.Part) (parts []string) {
	for _, part := range content {
		m, ok := part.(thread.Media)
		if !ok || m.Text != "" {
			continue
		}
		if isOwn(m.Source) {
			parts = append(parts, m.Raw)
		} else if written := mediaPart(m); !strings.HasPrefix(written, `{"text":`) {
			parts = append(parts, written)
		}
	}
	return parts
}

// mediaPart writes media, or a placeholder for a file that only another provider holds.
func mediaPart(m thread.Media) string {
	if mime, data, ok := media.ParseDataURL(m.URL); ok && m.Data == "" {
		m.Data, m.URL, m.MIME = data, "", cmp.Or(m.MIME, mime)
	}
	o := new(rawjson.Object).Str("mimeType", mimeOf(m))
	switch {
	case m.Data != "":
		return new(rawjson.Object).Raw("inlineData", o.Str("data", m.Data).String()).String()
	case m.URL != "":
		return new(rawjson.Object).Raw("fileData", o.Str("fileUri", m.URL).String()).String()
	}
	return textPart(media.Placeholder(m))
}

// commonMIME is the most common MIME type of each class.
var commonMIME = map[thread.MediaType]string{
	thread.Image: "image/png", thread.Document: "application/pdf", thread.Audio: "audio/wav", thread.Video: "video/mp4",
}

// mimeOf returns the MIME type, which the API demands.
func mimeOf(m thread.Media) string {
	return cmp.Or(m.MIME, commonMIME[m.Type], "application/octet-stream")
}
