package openai

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// Encode writes the body of a request. A prompt that was read from a Responses body gives
// that body back, with model, instructions, input, tools and max_output_tokens replaced
// where they differ; what was removed there becomes null. Any other prompt is translated,
// and the request asks OpenAI not to store it. The error wraps wire.ErrFormat if
// Source.Body is no object.
func (Responses) Encode(p *prompt.Prompt) ([]byte, error) {
	d, spliced, err := codec.Base(p, wire.Responses, responsesDocument)
	if err != nil {
		return nil, err
	}
	instructions, rest := responsesInstructions(p.System)
	if old := d.Get("instructions"); instructions != old.Raw && (instructions != "" || old.Type == gjson.String) {
		d.Set("instructions", cmp.Or(instructions, "null"))
	}
	w := responsesWriter{spliced: spliced, items: rawjson.RawItems(d.Get("input"), nil), tools: p.Tools}
	if text := d.Get("input"); text.Type == gjson.String { // one item
		w.items = []string{text.Raw}
	}
	w.system(rest)
	w.write(p.Messages)
	if !spliced || !w.isUntouched(d.Get("input")) {
		d.SetArray("input", w.input())
	}
	if tools := responsesWriteTools(p.Tools); len(tools) > 0 || d.Get("tools").IsArray() {
		d.SetArray("tools", tools)
	}
	if p.MaxOutput != rawjson.Count(d.Get("max_output_tokens")) {
		value := "null"
		if p.MaxOutput > 0 {
			value = strconv.Itoa(p.MaxOutput)
		}
		d.Set("max_output_tokens", value)
	}
	if !spliced {
		d.Set("store", "false")
	}
	return d.Bytes(), nil
}

// responsesInstructions returns the JSON value of the field instructions ("" for none) and
// the blocks that go into the input. Only leading blocks become instructions, since the
// field comes before everything else.
func responsesInstructions(system []prompt.System) (string, []prompt.System) {
	n := 0
	var texts []string
	for n < len(system) && system[n].Role == "instructions" {
		if system[n].Text != "" {
			texts = append(texts, system[n].Text)
		}
		n++
	}
	if n == 1 && isResponsesSource(system[0].Source) {
		return system[0].Raw, system[n:]
	}
	if len(texts) == 0 {
		return "", system[n:]
	}
	return rawjson.Quote(strings.Join(texts, "\n\n")), system[n:]
}

func isResponsesSource(s thread.Source) bool { return s.API == wire.Responses && s.Raw != "" }

func responsesWriteTools(tools []prompt.Tool) (list []string) {
	for _, t := range tools {
		if isResponsesSource(t.Source) {
			list = append(list, t.Raw)
		} else if written := responsesTool(t); written != "" {
			list = append(list, written)
		}
	}
	return list
}

// responsesTool translates a tool of another API; "" for tools that the other provider runs
// or defines itself.
func responsesTool(t prompt.Tool) string {
	kind := gjson.Get(t.Raw, "type").Str
	named := func(kind string) *rawjson.Object {
		return rawjson.NewTypedObject(kind).Str("name", fittedName(t.Name)).NonEmpty("description", t.Description)
	}
	if kind == "custom" && t.Schema == "" {
		o := named(kind)
		if grammar := gjson.Get(t.Raw, "custom.format.grammar"); grammar.IsObject() { // nested in Chat Completions, flat here
			o.Raw("format", rawjson.NewTypedObject("grammar").Raw("syntax", cmp.Or(grammar.Get("syntax").Raw, "null")).
				Raw("definition", cmp.Or(grammar.Get("definition").Raw, "null")).String())
		}
		return o.String()
	}
	schema := t.Schema
	if schema == "" {
		if t.Raw != "" && t.Description == "" && kind != "function" {
			return ""
		}
		schema = chatNoParameters
	}
	return named("function").Raw("parameters", schema).Raw("strict", "false").String()
}

// responsesWriter collects the items of a new input.
type responsesWriter struct {
	spliced bool           // the items go into a body that was read
	items   []string       // of that body
	index   map[string]int // the positions of items by their text; nil until needed
	pieces  []string       // the new input; each piece is one or more items
	tools   []prompt.Tool

	flat  map[string]bool            // calls that are written as text
	calls map[string]responsesAnswer // how to answer the calls written so far, by the id in the prompt
	used  map[string]bool            // call ids in the output
	ids   map[string]bool            // ids of recorded items in the output
}

// responsesAnswer is what a result needs to know of its call: the id that was written, and
// the type.
type responsesAnswer struct{ id, typ string }

// add appends items. Those that do not go into a body may come from a file, so they are
// repaired.
func (w *responsesWriter) add(text string) {
	if !w.spliced {
		text = w.repairItems(text)
	}
	w.pieces = append(w.pieces, text)
}

func (w *responsesWriter) system(blocks []prompt.System) {
	for _, s := range blocks {
		switch {
		case isResponsesSource(s.Source) && strings.HasPrefix(s.Raw, "{"):
			w.add(s.Raw)
		case s.Text != "":
			role := "developer"
			if s.Role == "system" {
				role = "system"
			}
			w.add(responsesMessage(role, rawjson.Quote(s.Text)))
		}
	}
}

func (w *responsesWriter) write(messages []thread.Message) {
	w.calls, w.used = map[string]responsesAnswer{}, map[string]bool{}
	if !w.spliced {
		messages = responsesUniqueIDs(messages)
	}
	w.flat = responsesFlat(messages)
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		if n := codec.WholeFrame(messages[i:], wire.Responses); n > 0 && !w.flattenResult(m) {
			w.add(m.Frame.Raw())
			for _, piece := range messages[i : i+n] {
				for _, c := range piece.Calls() {
					w.noteCall(c.ID, c.ID, c.Type)
				}
			}
			i += n - 1
			continue
		}
		switch m.Role {
		case thread.Assistant:
			w.assistant(m)
		case thread.Tool:
			w.tool(m)
		default:
			w.user(m)
		}
	}
}

func (w *responsesWriter) noteCall(id, written, typ string) {
	w.calls[id] = responsesAnswer{written, typ}
	w.used[written] = true
}

// isUntouched reports whether the pieces are the items that the input of the body holds.
func (w *responsesWriter) isUntouched(input gjson.Result) bool {
	rest, between := input.Raw, " \t\r\n,"
	switch {
	case input.IsArray():
		rest = rest[1 : len(rest)-1]
	case input.Type == gjson.Null:
		rest = ""
	}
	for _, piece := range w.pieces {
		var found bool
		if rest, found = strings.CutPrefix(strings.TrimLeft(rest, between), piece); !found {
			return false
		}
	}
	return strings.Trim(rest, between) == ""
}

// input are the pieces as elements of an array.
func (w *responsesWriter) input() []string {
	for i, piece := range w.pieces {
		if strings.HasPrefix(piece, `"`) { // an input that was a plain string
			w.pieces[i] = responsesMessage("user", piece)
		}
	}
	return w.pieces
}

func (w *responsesWriter) user(m *thread.Message) {
	role := "user"
	if m.Role == thread.System {
		role = "developer"
	}
	var content []string
	for i := 0; i < len(m.Parts); i++ {
		source := m.Parts[i].From()
		if o, ok := m.Parts[i].(thread.Opaque); ok && o.Kind == "compaction_trigger" && isResponsesSource(source) {
			w.add(source.Raw)
			continue
		}
		if isResponsesSource(source) {
			if own := responsesRole(source.Raw); own == "system" && m.Role == thread.System {
				role = own
			}
			if item, n, whole := responsesKept(m.Parts[i:]); whole && n == len(m.Parts) && responsesThreadRole(item) == m.Role {
				w.add(item)
				return
			}
		}
		if text := responsesContentText(m.Parts[i], m.Role); text != "" {
			content = append(content, text)
		}
	}
	switch {
	case len(content) > 0:
		w.add(responsesMessage(role, rawjson.Array(content)))
	case m.Role == thread.User: // an empty turn is still a turn, and legal
		w.add(responsesMessage("user", `""`))
	}
}

func responsesMessage(role, content string) string {
	return rawjson.NewTypedObject("message").Str("role", role).Raw("content", content).String()
}

func responsesRole(raw string) string { return gjson.Get(raw, "role").Str }

// responsesThreadRole is the role of a message item; "" for other items.
func responsesThreadRole(raw string) thread.Role {
	switch role := responsesRole(raw); role {
	case "system", "developer":
		return thread.System
	case "user", "assistant":
		return thread.Role(role)
	}
	if strings.HasPrefix(raw, `"`) {
		return thread.User
	}
	return ""
}

// callID returns the id for a call of another API: its own if OpenAI accepts it and no other
// call has it, else a hash that stays the same while the conversation grows.
func (w *responsesWriter) callID(id string) string {
	if codec.IsPlain(id, responsesMaxID) && !w.used[id] {
		return id
	}
	for n := 0; ; n++ {
		if made := "call_" + codec.Hash(id+"\x00"+strconv.Itoa(n), 12); !w.used[made] {
			return made
		}
	}
}

// responsesMaxID is the length limit of the ids of calls and items, in characters.
const responsesMaxID = 64
