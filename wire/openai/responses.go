package openai

import (
	"cmp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Responses is the codec of OpenAI's Responses API (POST /v1/responses), which Codex, the
// OpenAI SDKs, the AI SDK, opencode, pi and others speak. The zero value is ready to use
// and safe for concurrent use.
//
// # Reading
//
// All items of one model response (reasoning, messages, calls, built-in calls, …) become
// one assistant message, whose frame is the text from the first item to the last; if OpenAI
// ran several calls in it, one message for each of them, which share that frame. Every
// *_output item is a tool message of its own. The field instructions, and system and
// developer messages at the start of the input, become prompt.System, up to a summary of
// ours (policy workstream sends it in that role); later ones are system messages.
//
// A part's Source.Raw is the whole item that it was read from. If a message item has
// several content parts, the first of them has the item, and each of the others its own
// content part.
//
// A body with previous_response_id or conversation holds only the new end of a history
// that OpenAI keeps. It is read like any other, but results may answer calls that are not
// in it, and nothing can be removed from the hidden part.
//
// # Writing
//
// A message with a Frame of this API is sent as it was read; whoever changes a message
// makes a new one without a frame. Such a message is written part by part: a part with a
// Source of this API as its item, any other translated. Text of the assistant is a message
// item with output_text content. Reasoning is sent only together with the item that
// followed it, and items whose reasoning is gone lose their ids, because OpenAI refuses
// one half of such a pair; built-in calls, which need an id, are then left out too.
// Reasoning and opaque parts of other APIs are left out. Cache points are ignored: OpenAI
// finds prefixes by itself.
//
// Messages keep their order: the caller must see to it that results follow their calls.
type Responses struct{}

var _ wire.Codec = Responses{}

// API returns wire.Responses.
func (Responses) API() string { return wire.Responses }

// Decode reads the body of a request. The error wraps wire.ErrFormat and names the JSON
// path.
func (Responses) Decode(body string) (*prompt.Prompt, error) {
	d, err := responsesFormat.Read(body, responsesDocument)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"model", "instructions"} {
		if v := d.Get(name); v.Type != gjson.String && v.Type != gjson.Null {
			return nil, responsesFormat.Errorf(name, "want a string")
		}
	}
	p := &prompt.Prompt{Model: d.Get("model").Str, MaxOutput: rawjson.Count(d.Get("max_output_tokens"))}
	p.Source = &prompt.Source{API: wire.Responses, Body: body}
	if instructions := d.Get("instructions"); instructions.Type == gjson.String {
		p.System = append(p.System, prompt.System{Text: instructions.Str, Role: "instructions", Source: responsesSource(instructions.Raw)})
	}
	if p.Tools, err = responsesTools(d.Get("tools")); err != nil {
		return nil, err
	}
	if err := responsesDecodeInput(p, d.Get("input")); err != nil {
		return nil, err
	}
	p.Source.System, p.Source.Tools = len(p.System), len(p.Tools)
	return p, nil
}

// DecodeItems reads an array of input items without a request around it, as transcripts
// hold it. It returns the messages, and the system and developer messages at the start of
// the array. The error wraps wire.ErrFormat.
func DecodeItems(array string) ([]thread.Message, []prompt.System, error) {
	return decodeItems(array, false)
}

// decodeItems is DecodeItems, or reads the items of an answer. All of those are the model's: an output there
// answers a call that ran at the provider.
func decodeItems(array string, answer bool) ([]thread.Message, []prompt.System, error) {
	if err := responsesFormat.Check(array); err != nil {
		return nil, nil, err
	}
	items := gjson.Parse(array)
	if !items.IsArray() {
		return nil, nil, responsesFormat.Errorf("input", "want an array of items")
	}
	r := responsesReader{text: array}
	if answer {
		r.answered = map[string]bool{}
		for item := range rawjson.Items(items) {
			if strings.HasSuffix(item.Get("type").Str, "_output") {
				r.answered[item.Get("call_id").Str] = true
			}
		}
	}
	if err := r.read(items); err != nil {
		return nil, nil, err
	}
	return r.messages, r.system, nil
}

// responsesDocument opens a body that is known to be JSON. Where it names a field twice,
// the last one counts.
func responsesDocument(text string) (*rawjson.Document, error) {
	return responsesFormat.Open(text, nil)
}

func responsesDecodeInput(p *prompt.Prompt, input gjson.Result) error {
	switch {
	case input.Type == gjson.Null: // absent or null
		return nil
	case input.Type == gjson.String:
		p.Messages = []thread.Message{{
			Role:  thread.User,
			Parts: []thread.Part{thread.Text{Text: input.Str, Source: responsesSource(input.Raw)}},
			Frame: thread.NewFrame(wire.Responses, input.Raw, 0, 1, 1),
		}}
		p.Source.Elements = 1
		return nil
	case !input.IsArray():
		return responsesFormat.Errorf("input", "want a string or an array of items")
	}
	r := responsesReader{text: p.Source.Body}
	if err := r.read(input); err != nil {
		return err
	}
	p.System = append(p.System, r.system...)
	p.Messages = hosted.Split(r.messages)
	p.Source.Elements = r.count - len(r.system)
	return nil
}

func responsesTools(tools gjson.Result) (list []prompt.Tool, err error) {
	entries, err := responsesFormat.Objects("tools", tools, "an object")
	for _, tool := range entries {
		f := rawjson.FieldsOf(tool, make(rawjson.Fields, 0, 8))
		t := prompt.Tool{Description: f.Str("description"), Source: responsesSource(tool.Raw)}
		// An MCP server has a label, and a tool of OpenAI's own only a type.
		t.Name = cmp.Or(f.Str("name"), f.Str("server_label"), f.Str("type"))
		if schema := f.Get("parameters"); schema.IsObject() {
			t.Schema = schema.Raw
		}
		list = append(list, t)
	}
	return list, err
}

func responsesSource(raw string) thread.Source {
	return thread.Source{API: wire.Responses, Raw: raw}
}

// responsesFormat reports bodies that are not requests of this API.
const responsesFormat = codec.Format("openai responses")
