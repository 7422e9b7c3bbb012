package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// responsesEntry is one item of a response that is written anew.
type responsesEntry struct {
	text      string
	source    string // the item that was read, "" for items made here
	raw       bool   // the text is that item
	reasoning bool
	dropped   bool
}

// responsesContentKinds are the kinds of parts that stand in a message.
var responsesContentKinds = scan.WordSet("input_text output_text text refusal input_image input_file input_audio content unknown")

// assistant writes a model response part by part.
func (w *responsesWriter) assistant(m *thread.Message) {
	var entries []responsesEntry
	var fresh []string // content of a message item made here
	flush := func() {
		if len(fresh) > 0 {
			entries = append(entries, responsesEntry{text: responsesMessage("assistant", rawjson.Array(fresh))})
			fresh = nil
		}
	}
	for i := 0; i < len(m.Parts); i++ {
		part := m.Parts[i]
		source := part.From()
		own := isResponsesSource(source)
		switch p := part.(type) {
		case thread.Reasoning:
			if own {
				flush()
				entries = append(entries, responsesEntry{text: source.Raw, source: source.Raw, raw: true, reasoning: true})
			}
			continue
		case thread.ToolCall:
			flush()
			entries = append(entries, w.call(p))
			continue
		case thread.ToolResult:
			continue // an assistant message has none
		}
		if own && responsesThreadRole(source.Raw) == thread.Assistant {
			flush()
			text, n, whole := responsesKept(m.Parts[i:])
			entries = append(entries, responsesEntry{text: text, source: source.Raw, raw: whole})
			i += n - 1
			continue
		}
		if o, ok := part.(thread.Opaque); ok && own && !responsesContentKinds[o.Kind] {
			flush()
			entries = append(entries, responsesEntry{text: source.Raw, source: source.Raw, raw: true})
			continue
		}
		if text := responsesContentText(part, thread.Assistant); text != "" {
			fresh = append(fresh, text)
		}
	}
	flush()
	w.pair(entries)
	for _, e := range entries {
		if !e.dropped {
			w.add(e.text)
		}
	}
}

// responsesKept returns the item that the first of the parts was read from, with those of
// its content parts that are still there, and how many parts they are. It is whole if all
// are there.
func responsesKept(parts []thread.Part) (item string, n int, whole bool) {
	raw := parts[0].From().Raw
	content := gjson.Get(raw, "content")
	if !content.IsArray() {
		return raw, 1, true
	}
	var kept []string
	total := 0
	for c := range rawjson.Items(content) {
		if n := len(kept); n == 0 || n < len(parts) && isResponsesSource(parts[n].From()) && parts[n].From().Raw == c.Raw {
			kept = append(kept, c.Raw)
		}
		total++
	}
	if len(kept) == total {
		return raw, max(total, 1), total > 0
	}
	return jsonedit.Set(raw, "content", rawjson.Array(kept)), len(kept), false
}

// pair keeps reasoning and its item together. OpenAI refuses a reasoning item without the
// item that followed it, and an item with an id whose reasoning is missing.
func (w *responsesWriter) pair(entries []responsesEntry) {
	sent := map[string]bool{} // reasoning items that stay
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if !e.reasoning {
			continue
		}
		e.dropped = i+1 == len(entries) || !entries[i+1].raw || entries[i+1].dropped
		if at, ok := w.position(e.text); ok && !e.dropped {
			e.dropped = at+1 >= len(w.items) || w.items[at+1] != entries[i+1].text
		}
		if !e.dropped {
			sent[e.text] = true
		}
	}
	last := "" // the last reasoning before the entry that stays
	for i := range entries {
		e := &entries[i]
		if e.reasoning {
			if !e.dropped {
				last = e.text
			}
			continue
		}
		if id := gjson.Get(e.text, "id"); !id.Exists() {
			continue
		}
		if of, known := w.reasoningOf(e.source); known && (of == "" || sent[of]) || !known && last != "" {
			continue
		}
		switch kind := gjson.Get(e.text, "type").Str; kind {
		case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "item_reference":
			e.dropped = true
		case "message", "", "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call", "tool_search_call":
			e.text, e.raw = jsonedit.Delete(e.text, "id"), false
		}
	}
}

// position finds an item of the body by its text.
func (w *responsesWriter) position(text string) (int, bool) {
	if w.index == nil {
		w.index = make(map[string]int, len(w.items))
		for i, item := range slices.Backward(w.items) {
			w.index[item] = i
		}
	}
	at, ok := w.index[text]
	return at, ok
}

// reasoningOf returns the reasoning before an item of the body, "" for none. It is false if
// the item is not in the body.
func (w *responsesWriter) reasoningOf(text string) (string, bool) {
	at, ok := w.position(text)
	if !ok {
		return "", false
	}
	for at--; at >= 0; at-- {
		before := w.items[at]
		typ := gjson.Get(before, "type").Str
		if typ == "reasoning" {
			return before, true
		}
		if role := responsesThreadRole(before); role != "" && role != thread.Assistant || responsesIsOutput(typ, gjson.Get(before, "call_id").Str) {
			break
		}
	}
	return "", true
}

// call writes a call: as it was read, or made from its fields.
func (w *responsesWriter) call(c thread.ToolCall) responsesEntry {
	if w.flat[c.ID] {
		text := responsesText("output_text", "[call "+c.Name+": "+c.Arguments+"]")
		return responsesEntry{text: responsesMessage("assistant", rawjson.Array([]string{text}))}
	}
	if isResponsesSource(c.Source) {
		w.noteCall(c.ID, c.ID, c.Type)
		return responsesEntry{text: c.Raw, source: c.Raw, raw: true}
	}
	id := w.callID(c.ID)
	w.noteCall(c.ID, id, c.Type)
	of := func(kind string) *rawjson.Object { return rawjson.NewTypedObject(kind).Str("call_id", id) }
	var o *rawjson.Object
	switch c.Type {
	case "custom":
		o = of("custom_tool_call").Str("name", fittedName(c.Name)).Str("input", c.Arguments)
	case "local_shell_call", "shell_call":
		o = of(c.Type).Raw("action", responsesObject(c.Arguments)).Str("status", "completed")
	case "apply_patch_call":
		o = of(c.Type).Raw("operation", responsesObject(c.Arguments)).Str("status", "completed")
	case "computer_call":
		o = of(c.Type).Raw("action", responsesObject(c.Arguments)).Raw("pending_safety_checks", "[]").Str("status", "completed")
	case "tool_search_call":
		o = of(c.Type).Str("execution", "client").Raw("arguments", responsesObject(c.Arguments)).Str("status", "completed")
	default:
		o = of("function_call")
		if space, local, ok := w.namespace(c.Name); ok {
			o.Str("name", local).Str("namespace", space)
		} else {
			o.Str("name", fittedName(c.Name))
		}
		o.Str("arguments", cmp.Or(c.Arguments, "{}"))
	}
	return responsesEntry{text: o.String()}
}

// responsesObject returns arguments that are an object or a list, and {} for others.
func responsesObject(arguments string) string {
	if v := gjson.Parse(arguments); (v.IsObject() || v.IsArray()) && rawjson.Valid(arguments) {
		return arguments
	}
	return "{}"
}

// namespace splits the name of a function if its namespace is among the tools.
func (w *responsesWriter) namespace(name string) (space, local string, ok bool) {
	at := strings.LastIndex(name, responsesNamespaceMark)
	if at < 0 {
		return "", "", false
	}
	for _, t := range w.tools {
		if t.Name == name[:at] && isResponsesSource(t.Source) && gjson.Get(t.Raw, "type").Str == "namespace" {
			return name[:at], name[at+1:], true
		}
	}
	return "", "", false
}
