package gemini

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/media"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// fields are the members of a part.
type fields struct {
	kind      string       // the name of the data field, camel case; "" without one
	data      gjson.Result // its value
	thought   bool
	signature string
	several   bool   // there is more than one data field
	unknown   string // the first field that is neither data nor known
}

// A part has exactly one of the fields in isData (a union in the API's definition), and may
// also have those in beside.
var (
	isData = scan.WordSet("text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse")
	beside = scan.WordSet("videoMetadata mediaResolution partMetadata")
)

// cutPart reads the members of a part. A null member counts as absent, as in every parser
// of protocol messages.
func cutPart(part gjson.Result) (f fields) {
	for _, m := range rawjson.FieldsOf(part, make(rawjson.Fields, 0, 4)) {
		switch name := camel(m.Name); {
		case m.Value.Type == gjson.Null, beside[name]:
		case name == "thought":
			f.thought = m.Value.Type == gjson.True
		case name == "thoughtSignature":
			f.signature = m.Value.Str
		case isData[name]:
			f.several = f.kind != ""
			f.kind, f.data = name, m.Value
		case f.unknown == "":
			f.unknown = m.Name
		}
	}
	return f
}

// decodePart reads one part. Calls come only from models and responses only from users; on
// the wrong side they become opaque parts. The id of a call or response may be empty.
func decodePart(v gjson.Result, model bool) thread.Part {
	source := sourceOf(v.Raw)
	f := cutPart(v)
	opaque := hosted.Mark(thread.Opaque{Kind: f.kind, Source: source})
	if f.several || f.kind == "" {
		opaque.Kind = "part"
		if f.unknown != "" {
			opaque.Kind = f.unknown
		}
		return opaque
	}
	switch f.kind {
	case "text":
		switch {
		case f.data.Type != gjson.String:
			return opaque
		case f.thought:
			return thread.Reasoning{Text: f.data.Str, Signature: f.signature, Source: source}
		}
		return thread.Text{Text: f.data.Str, Source: source}
	case "inlineData", "fileData":
		d := members(f.data, make(rawjson.Fields, 0, 4))
		m := thread.Media{MIME: d.Str("mimeType"), Data: d.Str("data"), URL: d.Str("fileUri"), Name: d.Str("displayName"), Source: source}
		if m.Type = media.ClassOf(m.MIME); (m.Data == "") != (m.URL == "") {
			return m
		}
	case "functionCall":
		if model && f.data.IsObject() {
			return decodeCall(f.data, f.signature, source)
		}
	case "functionResponse":
		if !model && f.data.IsObject() {
			return decodeResponse(f.data, source)
		}
	case "executableCode":
		opaque.Text = field(f.data, "code").Str
	case "codeExecutionResult":
		opaque.Text = field(f.data, "output").Str
	}
	return opaque
}

func decodeCall(v gjson.Result, signature string, source thread.Source) thread.ToolCall {
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 4))
	call := thread.ToolCall{ID: f.Str("id"), Name: f.Str("name"), Arguments: "{}", Signature: signature, Source: source}
	if args := f.Get("args"); args.Type != gjson.Null {
		call.Arguments = args.Raw
	}
	return call
}

func decodeResponse(v gjson.Result, source thread.Source) thread.ToolResult {
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 4))
	r := thread.ToolResult{CallID: f.Str("id"), Tool: f.Str("name"), Structured: f.Get("response").Raw, Outcome: thread.Success, Source: source}
	if r.Structured != "" {
		text, failed := readResponse(gjson.Parse(r.Structured))
		if failed {
			r.Outcome = thread.Failure
		}
		r.Content = append(r.Content, thread.Text{Text: text})
	}
	for part := range rawjson.Items(f.Get("parts")) {
		if field(part, "functionResponse").Exists() {
			// Only media are expected here. A result inside a result stays opaque, or
			// each level would be read again for every level around it.
			r.Content = append(r.Content, thread.Opaque{Kind: "functionResponse", Source: sourceOf(part.Raw)})
			continue
		}
		r.Content = append(r.Content, decodePart(part, false))
	}
	return r
}

// readResponse returns the readable form of a function's response: the text of an object
// with one text member (whose name the API leaves to the client), the joined texts of an
// MCP server's content, or else the JSON. A member "error" means a failure.
func readResponse(response gjson.Result) (text string, failed bool) {
	if response.Type == gjson.String {
		return response.Str, false
	}
	if !response.IsObject() {
		return response.Raw, false
	}
	f := rawjson.FieldsOf(response, make(rawjson.Fields, 0, 4))
	failed = f.Get("error").Type != gjson.Null
	if len(f) == 1 {
		if text, ok := soleText(f[0].Name, f[0].Value); ok {
			return text, failed
		}
	}
	return response.Raw, failed
}

// soleText reads the only member of a response. It is false if that is not text.
func soleText(name string, only gjson.Result) (string, bool) {
	if only.Type == gjson.String {
		return only.Str, true
	}
	if name != "content" {
		return "", false
	}
	var texts []string
	for item := range rawjson.Items(only) {
		text := field(item, "text")
		if text.Type != gjson.String || field(item, "type").Str != "text" {
			return "", false
		}
		texts = append(texts, text.Str)
	}
	return strings.Join(texts, "\n"), len(texts) > 0
}
