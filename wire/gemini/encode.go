package gemini

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Encode writes a request body. A prompt that Decode returned comes back byte for byte.
// Where messages were replaced, every other content keeps its bytes, with one exception: a
// content next to a rewritten one of the same role is merged with it, because Gemini wants
// the roles to alternate; then only its parts keep their bytes. Calls that follow another
// content of the model, because what was between them is gone, are merged too.
//
// The responses to a batch of calls are a content of their own after it, in the order of
// the calls. The user's text after them becomes another content, unless it shared one with
// a response in the request that was read.
//
// A prompt of another API is translated: its reasoning, opaque parts and provider-defined
// tools are left out, names are made to fit, and the first call of each step gets the value
// with which Gemini 3 accepts calls that it has not signed. Encode returns no error.
func (Codec) Encode(p *prompt.Prompt) ([]byte, error) {
	d := openMember(gjson.Result{})
	if isSpliced(p) {
		if read, err := openDocument(p.Source.Body); err == nil {
			d = read
		}
	}
	if had, err := decodeSystem(d.Get("systemInstruction")); err != nil || !slices.Equal(had, p.System) {
		d.Set("systemInstruction", writeSystem(p.System, d.Get("systemInstruction")))
	}
	if had, err := decodeTools(d.Get("tools")); err != nil || !slices.Equal(had, p.Tools) {
		d.Set("tools", writeTools(p.Tools))
	}
	d.SetArray("contents", layoutContents(p))
	if p.MaxOutput != maxOutput(d) {
		settings, limit := openMember(d.Get("generationConfig")), ""
		if p.MaxOutput > 0 {
			limit = strconv.Itoa(p.MaxOutput)
		}
		settings.Set("maxOutputTokens", limit)
		d.Set("generationConfig", string(settings.Bytes()))
	}
	return d.Bytes(), nil
}

// writeSystem writes the system instruction; other members that it had, such
// as its role, stay. It returns "" when no text is left.
func writeSystem(blocks []prompt.System, old gjson.Result) string {
	var parts []string
	for _, s := range blocks {
		switch {
		case isOwn(s.Source):
			parts = append(parts, s.Raw)
		case s.Text != "":
			parts = append(parts, textPart(s.Text))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	d := openMember(old)
	d.SetArray("parts", parts)
	return string(d.Bytes())
}

// writeTools writes consecutive function declarations into one element, and each tool of
// the provider into its own. Tools that another provider defines have no schema to declare
// and are left out.
func writeTools(tools []prompt.Tool) string {
	var elements, declarations []string
	flush := func() {
		if len(declarations) > 0 {
			elements = append(elements, `{"functionDeclarations":`+rawjson.Array(declarations)+`}`)
			declarations = nil
		}
	}
	for i := range tools {
		t := &tools[i]
		switch {
		case isOwn(t.Source) && isBuiltIn(t):
			flush()
			elements = append(elements, t.Raw)
		case isOwn(t.Source):
			declarations = append(declarations, t.Raw)
		case t.API == "" || t.Schema != "":
			o := new(rawjson.Object).Str("name", functionName(t.Name)).NonEmpty("description", t.Description)
			if rawjson.IsObject(t.Schema) { // this field accepts any JSON schema, the older one only a part
				o.Raw("parametersJsonSchema", strings.TrimSpace(t.Schema))
			}
			declarations = append(declarations, o.String())
		}
	}
	flush()
	if len(elements) == 0 {
		return ""
	}
	return rawjson.Array(elements)
}

// isBuiltIn reports whether a tool of this API was read from a field of its own, not from
// the function declarations.
func isBuiltIn(t *prompt.Tool) bool {
	for first := range rawjson.Members(gjson.Parse(t.Raw)) {
		return first == t.Name && t.Schema == ""
	}
	return false
}

// openMember opens a member of the body to change what is in it.
func openMember(old gjson.Result) *rawjson.Document {
	d, ok := rawjson.Open(old.Raw, camel)
	if !ok {
		d, _ = rawjson.Open("{}", camel)
	}
	return d
}

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
	return new(rawjson.Object).Raw("functionCall", o.String()).NonEmpty("thoughtSignature", signature).String()
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
	o := new(rawjson.Object).Str("mimeType", cmp.Or(m.MIME, commonMIME[m.Type], "application/octet-stream"))
	switch {
	case m.Data != "":
		return new(rawjson.Object).Raw("inlineData", o.Str("data", m.Data).String()).String()
	case m.URL != "":
		return new(rawjson.Object).Raw("fileData", o.Str("fileUri", m.URL).String()).String()
	}
	return textPart(media.Placeholder(m))
}

// commonMIME is the most common MIME type of each class, as the API demands one.
var commonMIME = map[thread.MediaType]string{
	thread.Image: "image/png", thread.Document: "application/pdf", thread.Audio: "audio/wav", thread.Video: "video/mp4",
}
