package gemini

import (
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// format reports bodies that are not requests of this API.
const format = codec.Format("gemini")

// openDocument opens a body that is known to be JSON, its names in camel case.
func openDocument(body string) (*rawjson.Document, error) {
	return format.Open(body, camel, "contents", "systemInstruction", "tools", "generationConfig")
}

// Decode reads a request body. The error wraps wire.ErrFormat and names the JSON path of
// what is wrong. Parts of unknown type become opaque parts; unknown fields stay in the
// body that Prompt.Source holds.
func (Codec) Decode(body string) (*prompt.Prompt, error) {
	d, err := format.Read(body, openDocument)
	if err != nil {
		return nil, err
	}
	p := &prompt.Prompt{MaxOutput: maxOutput(d)}
	if p.System, err = decodeSystem(d.Get("systemInstruction")); err != nil {
		return nil, err
	}
	if p.Tools, err = decodeTools(d.Get("tools")); err != nil {
		return nil, err
	}
	elements := 0
	if p.Messages, elements, err = decodeContents(d.Get("contents")); err != nil {
		return nil, err
	}
	p.Messages = hosted.Split(p.Messages)
	p.Source = &prompt.Source{
		API: wire.Gemini, Body: body,
		System: len(p.System), Tools: len(p.Tools), Elements: elements,
	}
	return p, nil
}

func maxOutput(d *rawjson.Document) int {
	return int(field(d.Get("generationConfig"), "maxOutputTokens").Int())
}

// DecodeContents reads an array of contents that stands alone, as session files hold it.
// The error wraps wire.ErrFormat.
func DecodeContents(array string) ([]thread.Message, error) {
	if err := format.Check(array); err != nil {
		return nil, err
	}
	messages, _, err := decodeContents(gjson.Parse(array))
	return messages, err
}

// decodeSystem reads the parts of the system instruction, one block each.
func decodeSystem(v gjson.Result) (blocks []prompt.System, err error) {
	if v.Type == gjson.Null {
		return nil, nil
	}
	if !v.IsObject() {
		return nil, format.Errorf("systemInstruction", "want an object with parts")
	}
	list, err := format.Objects("systemInstruction.parts", field(v, "parts"), "an object")
	for _, part := range list {
		blocks = append(blocks, prompt.System{Text: field(part, "text").Str, Role: "instructions", Source: sourceOf(part.Raw)})
	}
	return blocks, err
}

func sourceOf(raw string) thread.Source { return thread.Source{API: wire.Gemini, Raw: raw} }

// isOwn reports whether s holds JSON of this API.
func isOwn(s thread.Source) bool { return s.API == wire.Gemini && s.Raw != "" }

// decodeTools reads the declarations of all functions, and the tools that the
// provider runs itself, each under its field name.
func decodeTools(v gjson.Result) (tools []prompt.Tool, err error) {
	elements, err := format.Objects("tools", v, "an object")
	if err != nil {
		return nil, err
	}
	for n, element := range elements {
		for _, f := range rawjson.FieldsOf(element, nil) {
			if camel(f.Name) != "functionDeclarations" {
				tools = append(tools, prompt.Tool{Name: f.Name, Source: sourceOf(new(rawjson.Object).Raw(f.Name, f.Value.Raw).String())})
				continue
			}
			if !f.Value.IsArray() {
				return nil, format.Errorf(fmt.Sprintf("tools[%d].functionDeclarations", n), "want an array")
			}
			for d := range rawjson.Items(f.Value) {
				schema := field(d, "parametersJsonSchema")
				if !schema.Exists() {
					schema = field(d, "parameters")
				}
				tools = append(tools, prompt.Tool{Name: field(d, "name").Str, Description: field(d, "description").Str, Schema: schema.Raw, Source: sourceOf(d.Raw)})
			}
		}
	}
	return tools, nil
}

// reader splits contents into messages and finds the calls that responses without an id
// answer.
type reader struct {
	messages []thread.Message
	seen     map[string]bool // ids of all calls so far
	open     []openCall      // unanswered calls of the last model turn
	model    bool            // the last content was the model's
	unnamed  int             // calls without an id so far
	orphans  int             // responses to nothing so far
}

type openCall struct{ id, name string }

func decodeContents(v gjson.Result) ([]thread.Message, int, error) {
	if !v.IsArray() {
		return nil, 0, format.Errorf("contents", "want an array of contents")
	}
	r := reader{seen: map[string]bool{}}
	n := 0
	for content := range rawjson.Items(v) {
		if err := r.content(content, n); err != nil {
			return nil, 0, err
		}
		n++
	}
	return r.messages, n, nil
}

// content appends the messages of one content.
func (r *reader) content(v gjson.Result, position int) error {
	fail := func(below, problem string) error {
		return format.Errorf(fmt.Sprintf("contents[%d]%s", position, below), "%s", problem)
	}
	if !v.IsObject() {
		return fail("", "want an object with role and parts")
	}
	f := rawjson.FieldsOf(v, make(rawjson.Fields, 0, 4))
	role, parts := f.Get("role"), f.Get("parts")
	if role.Exists() && role.Type != gjson.String && role.Type != gjson.Null {
		return fail(".role", "want a string")
	}
	if parts.Exists() && !parts.IsArray() {
		return fail(".parts", "want an array")
	}
	list, bad := rawjson.Objects(parts, nil)
	if bad >= 0 {
		return fail(fmt.Sprintf(".parts[%d]", bad), "want an object")
	}
	first := len(r.messages)
	switch who := role.Str; who {
	case "model":
		if !r.model {
			r.open = r.open[:0]
		}
		m := thread.Message{Role: thread.Assistant}
		for _, part := range list {
			m.Parts = append(m.Parts, r.modelPart(part))
		}
		r.messages = append(r.messages, m)
	case "user", "function", "":
		for _, part := range list {
			r.userPart(part, first)
		}
		if len(r.messages) == first { // an empty content keeps its place
			r.messages = append(r.messages, thread.Message{Role: thread.User})
		}
	default:
		return fail(".role", fmt.Sprintf("want user, model or function, have %q", who))
	}
	r.model = role.Str == "model"
	frame := thread.NewFrame(wire.Gemini, v.Raw, position, 1, len(r.messages)-first)
	for i := range r.messages[first:] {
		r.messages[first+i].Frame, r.messages[first+i].Index = frame, i
	}
	return nil
}

// modelPart reads a part of a model's content.
func (r *reader) modelPart(v gjson.Result) thread.Part {
	part := decodePart(v, true)
	call, ok := part.(thread.ToolCall)
	if !ok {
		return part
	}
	if call.ID == "" {
		call.ID = thread.LocalID(r.unnamed)
		r.unnamed++
	}
	r.seen[call.ID] = true
	r.open = append(r.open, openCall{call.ID, call.Name})
	return call
}

// userPart appends a part of a user's content: a response as a message of its own, any
// other part to the current user message.
func (r *reader) userPart(v gjson.Result, first int) {
	part := decodePart(v, false)
	if result, ok := part.(thread.ToolResult); ok {
		result.CallID = r.answer(result.CallID, result.Tool)
		r.messages = append(r.messages, thread.Message{Role: thread.Tool, Parts: []thread.Part{result}})
		return
	}
	if last := len(r.messages) - 1; last >= first && r.messages[last].Role == thread.User {
		r.messages[last].Parts = append(r.messages[last].Parts, part)
		return
	}
	r.messages = append(r.messages, thread.Message{Role: thread.User, Parts: []thread.Part{part}})
}

// answer returns the id of the call that a response answers: its own if a call has it, else
// that of the first open call with the same name. A response without a call keeps its own
// id, or gets one that no call has.
func (r *reader) answer(id, name string) string {
	at := -1
	for i, c := range r.open {
		if id != "" && c.id == id {
			at = i
			break
		}
		if at < 0 && c.name == name && (id == "" || !r.seen[id]) {
			at = i
		}
	}
	switch {
	case at >= 0:
		id = r.open[at].id
		r.open = append(r.open[:at], r.open[at+1:]...)
	case id == "":
		r.orphans++
		id = thread.LocalID(-r.orphans)
	}
	return id
}
