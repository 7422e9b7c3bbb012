package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// DefaultMaxTokens is the max_tokens, in tokens, of a body made from a prompt
// that names none: the API demands one.
const DefaultMaxTokens = 4096

// Encode writes a request body.
//
// A prompt that was decoded from a body of this API is spliced into that body:
// only the members that differ are written anew, and in them every untouched
// message, block and tool keeps its bytes. Any other prompt makes a full body
// with model, max_tokens, system, tools and messages. What only another API can
// read (its reasoning, its opaque blocks, uploads) is left out, a system
// message in mid conversation is lowered to marked user text, ids and names are
// rewritten where the API would refuse them.
//
// Cache points are set where the block may carry a mark, up to four marks in
// all; the marks that the caller's blocks carry come first. The error wraps
// wire.ErrFormat when the body behind the prompt cannot be read.
func (Codec) Encode(p *prompt.Prompt) ([]byte, error) {
	e := newEncoder(p)
	if p.Source == nil || p.Source.API != wire.Anthropic {
		return e.build(), nil
	}
	top, err := readBody(p.Source.Body)
	if err != nil {
		return nil, err
	}
	return e.splice(top), nil
}

// encoder holds one encoding.
type encoder struct {
	p        *prompt.Prompt
	names    *naming // call ids
	tools    *naming // tool names
	system   []string
	schemas  []string // the tools, as JSON
	elements []element
	// midSystem says that the body holds system messages in mid conversation,
	// so the model takes them.
	midSystem bool
}

func newEncoder(p *prompt.Prompt) *encoder {
	e := &encoder{p: p, names: newNaming("call", 0), tools: newNaming("tool", 128)}
	for i := range p.Tools {
		if ours(p.Tools[i].Source) {
			e.tools.reserve(p.Tools[i].Name)
		}
	}
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			if call, ok := part.(thread.ToolCall); ok && ours(call.Source) {
				e.names.reserve(call.ID)
				e.tools.reserve(call.Name)
			}
		}
	}
	return e
}

// ours reports whether a part carries bytes of this API.
func ours(s thread.Source) bool { return s.API == wire.Anthropic && s.Raw != "" }

// build makes a body from nothing.
func (e *encoder) build() []byte {
	e.writeSystem()
	e.writeTools()
	e.assemble()
	e.setMarks(e.points(""))
	limit := e.p.MaxOutput
	if limit <= 0 {
		limit = DefaultMaxTokens
	}
	var o object
	o.str("model", e.p.Model)
	o.raw("max_tokens", strconv.Itoa(limit))
	if len(e.system) > 0 {
		o.raw("system", array(e.system))
	}
	if len(e.schemas) > 0 {
		o.raw("tools", array(e.schemas))
	}
	o.raw("messages", array(raws(e.elements)))
	return append(o.b, '}')
}

// splice writes what differs into the body the prompt was decoded from.
func (e *encoder) splice(top *body) []byte {
	e.midSystem = e.holdsSystem(top)
	e.writeSystem()
	e.writeTools()
	e.assemble()
	e.setMarks(e.points(top.mark))

	var edits []edit
	if e.p.Model != top.modelName() {
		edits = append(edits, top.set(top.model, "model", rawjson.Quote(e.p.Model)))
	}
	if n := e.p.MaxOutput; n > 0 && n != top.maxTokens() {
		edits = append(edits, top.set(top.limit, "max_tokens", strconv.Itoa(n)))
	}
	var gone []string
	for _, list := range []struct {
		member
		name  string
		items []string
	}{{top.system, "system", e.system}, {top.tools, "tools", e.schemas}} {
		switch {
		case sameItems(list.value, list.items):
		case len(list.items) == 0:
			gone = append(gone, list.name)
		default:
			edits = append(edits, top.setArray(list.member, list.name, list.items))
		}
	}
	edits = append(edits, top.remove(gone)...)
	if messages := raws(e.elements); !sameItems(top.messages.value, messages) {
		edits = append(edits, edit{from: top.messages.value.Index, to: top.messages.end(), items: messages})
	}
	return top.apply(edits)
}

// holdsSystem looks for system messages in the body, where it matters.
func (e *encoder) holdsSystem(top *body) (found bool) {
	if !slices.ContainsFunc(e.p.Messages, func(m thread.Message) bool { return m.Role == thread.System }) {
		return false
	}
	top.messages.value.ForEach(func(_, v gjson.Result) bool {
		found = memberOf(v.Raw, "role").Str == string(thread.System)
		return !found
	})
	return found
}

// sameItems reports whether a member holds exactly the items, as an array, as
// one string, or by not being there.
func sameItems(v gjson.Result, items []string) bool {
	switch {
	case v.Type == gjson.String:
		return len(items) == 1 && items[0] == v.Raw
	case !v.IsArray():
		return len(items) == 0
	}
	n := 0
	same := true
	v.ForEach(func(_, item gjson.Result) bool {
		same = n < len(items) && items[n] == item.Raw
		n++
		return same
	})
	return same && n == len(items)
}

// edit replaces a stretch of the body by a text, or by an array of items.
type edit struct {
	from, to int
	text     string
	items    []string
}

func (e *edit) size() int {
	n := len(e.text)
	if e.items != nil {
		n += 2 + len(e.items)
	}
	for _, item := range e.items {
		n += len(item)
	}
	return n
}

func (e *edit) appendTo(b []byte) []byte {
	b = append(b, e.text...)
	if e.items == nil {
		return b
	}
	for i, item := range e.items {
		b = append(append(b, "[,"[min(i, 1)]), item...)
	}
	if len(e.items) == 0 {
		b = append(b, '[')
	}
	return append(b, ']')
}

// set replaces the value of a member, or adds the member as the first one.
func (b *body) set(m member, name, value string) edit {
	if m.value.Exists() {
		return edit{from: m.value.Index, to: m.end(), text: value}
	}
	at := b.open + 1
	return edit{from: at, to: at, text: rawjson.Quote(name) + ":" + value + ","}
}

// setArray is set for lists: a system of one string is given back as a string.
func (b *body) setArray(m member, name string, items []string) edit {
	if name == "system" {
		if len(items) == 1 && strings.HasPrefix(items[0], `"`) {
			return b.set(m, name, items[0])
		}
		items = slices.Clone(items)
		for i := range items {
			items[i] = asBlock(items[i])
		}
	}
	return b.set(m, name, array(items))
}

// remove cuts members out, each with one comma. The messages always stay, so
// something is left.
func (b *body) remove(names []string) []edit {
	var edits []edit
	last := 0 // the last member that stays
	for i, m := range b.members {
		if !slices.Contains(names, m.name) {
			last = i
		}
	}
	for i, m := range b.members[:last] {
		if slices.Contains(names, m.name) {
			edits = append(edits, edit{from: m.key, to: b.members[i+1].key})
		}
	}
	if end := b.members[len(b.members)-1].end(); end > b.members[last].end() {
		edits = append(edits, edit{from: b.members[last].end(), to: end})
	}
	return edits
}

// apply makes the edits, none of which overlap. Those that add members at the
// same place keep the order they came in.
func (b *body) apply(edits []edit) []byte {
	slices.SortStableFunc(edits, func(x, y edit) int { return x.from - y.from })
	size := len(b.doc)
	for _, e := range edits {
		size += e.size() - (e.to - e.from)
	}
	out := make([]byte, 0, max(size, 0))
	at := 0
	for _, e := range edits {
		out = e.appendTo(append(out, b.doc[at:e.from]...))
		at = e.to
	}
	return append(out, b.doc[at:]...)
}

// asBlock makes a text block of a JSON string, and leaves blocks as they are.
func asBlock(raw string) string {
	if !strings.HasPrefix(raw, `"`) {
		return raw
	}
	return new(object).str("type", "text").raw("text", raw).String()
}

func textBlock(text string) string {
	return new(object).str("type", "text").str("text", text).String()
}

func (e *encoder) writeSystem() {
	for _, s := range e.p.System {
		switch {
		case ours(s.Source):
			e.system = append(e.system, s.Raw)
		case !blank(s.Text):
			e.system = append(e.system, textBlock(s.Text))
		}
	}
	if e.p.Source == nil || e.p.Source.API != wire.Anthropic {
		for i := range e.system {
			e.system[i] = asBlock(e.system[i])
		}
	}
}

// noArguments is the schema of a tool that came without one, freeText that of
// a tool whose argument is plain text.
const (
	noArguments = `{"type":"object","properties":{}}`
	freeText    = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`
)

// writeTools writes the tools. One that another provider runs itself cannot be
// translated and is left out.
func (e *encoder) writeTools() {
	for _, t := range e.p.Tools {
		if ours(t.Source) {
			e.schemas = append(e.schemas, t.Raw)
			continue
		}
		schema := t.Schema
		kind := gjson.Get(t.Raw, "type").Str
		switch {
		case !validObject(schema) && kind == "custom":
			schema = freeText
		case !validObject(schema) && kind != "" && kind != "function":
			continue
		case !validObject(schema):
			schema = noArguments
		case gjson.Get(schema, "type").Str != "object":
			schema = withMember(schema, "type", `"object"`)
		}
		o := new(object).str("name", e.tools.of(t.Name))
		if t.Description != "" {
			o.str("description", t.Description)
		}
		e.schemas = append(e.schemas, o.raw("input_schema", schema).String())
	}
}

// withMember sets a member of a valid JSON object and leaves the rest alone.
func withMember(doc, name, value string) string {
	doc = strings.TrimSpace(doc)
	at := memberOf(doc, name)
	switch {
	case at.Exists():
		return doc[:at.Index] + value + doc[at.Index+len(at.Raw):]
	case blank(doc[1 : len(doc)-1]):
		return new(object).raw(name, value).String()
	}
	return doc[:len(doc)-1] + "," + rawjson.Quote(name) + ":" + value + "}"
}

// memberOf finds a member of a JSON object; where it stands twice the last one
// counts. The index of the result is its place in doc.
func memberOf(doc, name string) gjson.Result {
	from, to, ok := rawjson.Member(doc, name)
	if !ok {
		return gjson.Result{}
	}
	found := gjson.Parse(doc[from:to])
	found.Index = from
	return found
}

// element is one element of the messages array while it is written.
type element struct {
	role   string
	raw    string  // the exact bytes, when the frame is whole
	blocks []piece // else the blocks it is made of
	first  int     // the messages of the prompt in it: first up to, not
	end    int     // including, end
}

// piece is a block and the message it belongs to.
type piece struct {
	raw     string
	message int
}

func (e *element) String() string {
	if e.raw != "" {
		return e.raw
	}
	size := len(`{"role":"assistant","content":[]}`) + len(e.blocks)
	for i := range e.blocks {
		size += len(e.blocks[i].raw)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(`{"role":"`)
	b.WriteString(e.role)
	b.WriteString(`","content":[`)
	for i := range e.blocks {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e.blocks[i].raw)
	}
	b.WriteString("]}")
	return b.String()
}

func raws(elements []element) []string {
	list := make([]string, len(elements))
	for i := range elements {
		list[i] = elements[i].String()
	}
	return list
}
