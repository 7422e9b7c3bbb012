package anthropic

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// defaultMaxTokens is the max_tokens of a new body whose prompt sets none, because the API
// demands one.
const defaultMaxTokens = 4096

// Encode writes a request body.
//
// A prompt that was decoded from a body of this API is spliced into that body: only the
// members that differ are written anew, and in them every untouched message, block and
// tool keeps its bytes. Any other prompt makes a full body with model, max_tokens, system,
// tools and messages. Content that only another API can read (its reasoning, opaque
// blocks, uploads) is left out, system messages in mid conversation become marked user
// text, and ids and names are changed where the API would refuse them.
//
// Cache points become marks on blocks that may carry one, up to four in all; marks that
// the caller's blocks already carry count first. The error wraps wire.ErrFormat when the
// body behind the prompt cannot be read.
func (Codec) Encode(p *prompt.Prompt) ([]byte, error) {
	top, spliced, err := codec.Base(p, wire.Anthropic, openDocument)
	if err != nil {
		return nil, err
	}
	e := newEncoder(p, spliced)
	e.midSystem = e.holdsSystem(top.Get("messages"))
	e.writeSystem()
	e.writeTools()
	e.assemble()
	e.setMarks(e.chooseMarks(codec.CacheTTL(top.Get("cache_control"))))
	limit := p.MaxOutput
	if limit <= 0 && !e.spliced {
		limit = defaultMaxTokens
	}
	if limit > 0 && limit != rawjson.Count(top.Get("max_tokens")) {
		top.Set("max_tokens", strconv.Itoa(limit))
	}
	setBlocks(top, "system", e.system)
	setBlocks(top, "tools", e.schemas)
	elements := make([]string, len(e.elements))
	for i := range e.elements {
		elements[i] = e.elements[i].String()
	}
	top.SetArray("messages", elements)
	return top.Bytes(), nil
}

// setBlocks sets a list, or removes it if it is empty. A system of one string stays a
// string.
func setBlocks(top *rawjson.Document, name string, blocks []string) {
	old := top.Get(name)
	switch {
	case rawjson.IsArrayOf(old, blocks), len(blocks) == 0 && old.Type == gjson.Null:
	case len(blocks) == 0:
		top.Set(name, "")
	case len(blocks) == 1 && strings.HasPrefix(blocks[0], `"`):
		if blocks[0] != old.Raw {
			top.Set(name, blocks[0])
		}
	default:
		whole := make([]string, len(blocks))
		for i := range blocks {
			whole[i] = asBlock(blocks[i])
		}
		top.SetArray(name, whole)
	}
}

// encoder holds one encoding.
type encoder struct {
	p        *prompt.Prompt
	spliced  bool // into the body that the prompt was read from
	calls    callNames
	tools    toolNames
	system   []string
	schemas  []string // the tools, as JSON
	elements []element
	// midSystem means that the body holds system messages in mid conversation, so the
	// model accepts them.
	midSystem bool
}

func newEncoder(p *prompt.Prompt, spliced bool) *encoder {
	e := &encoder{
		p: p, spliced: spliced, tools: toolNames{},
		calls: callNames{taken: map[string]bool{}, given: map[string]string{}, pending: map[string][]string{}, last: map[string]int{}},
	}
	for i := range p.Tools {
		if isOwn(p.Tools[i].Source) {
			e.tools[p.Tools[i].Name] = true
		}
	}
	if e.calls.asTheyAre = namedAsTheyAre(p.Messages); e.calls.asTheyAre {
		return e
	}
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			if call, ok := part.(thread.ToolCall); ok && isOwn(call.Source) {
				e.calls.reserve(call.ID)
				e.tools[call.Name] = true
			}
		}
	}
	return e
}

// namedAsTheyAre reports whether all calls are sent as they are, and results name them in a way that the API
// accepts, so that every call and every tool has its own name.
func namedAsTheyAre(messages []thread.Message) bool {
	for i := range messages {
		for _, part := range messages[i].Parts {
			switch p := part.(type) {
			case thread.ToolCall:
				if !isOwn(p.Source) || !codec.IsPlain(p.Name, maxToolName) {
					return false
				}
			case thread.ToolResult:
				if !codec.IsPlain(p.CallID, len(p.CallID)) {
					return false
				}
			}
		}
	}
	return true
}

func isOwn(s thread.Source) bool { return s.API == wire.Anthropic && s.Raw != "" }

// holdsSystem looks for system messages in the body, where it matters.
func (e *encoder) holdsSystem(messages gjson.Result) bool {
	if !e.spliced || !slices.ContainsFunc(e.p.Messages, func(m thread.Message) bool { return m.Role == thread.System }) {
		return false
	}
	for v := range rawjson.Items(messages) {
		if v.Get("role").Str == string(thread.System) {
			return true
		}
	}
	return false
}

// asBlock makes a text block of a JSON string, and leaves blocks as they are.
func asBlock(raw string) string {
	if !strings.HasPrefix(raw, `"`) {
		return raw
	}
	return rawjson.NewTypedObject("text").Raw("text", raw).String()
}

func textBlock(text string) string {
	return rawjson.NewTypedObject("text").Str("text", text).String()
}

func (e *encoder) writeSystem() {
	for _, s := range e.p.System {
		switch {
		case isOwn(s.Source):
			e.system = append(e.system, s.Raw)
		case !isBlank(s.Text):
			e.system = append(e.system, textBlock(s.Text))
		}
	}
	if !e.spliced {
		for i := range e.system {
			e.system[i] = asBlock(e.system[i])
		}
	}
}

// noArguments is the schema of a tool that has none, freeText that of a tool whose
// argument is plain text.
const (
	noArguments = `{"type":"object","properties":{}}`
	freeText    = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`
)

// writeTools writes the tools, without those that another provider runs itself.
func (e *encoder) writeTools() {
	for _, t := range e.p.Tools {
		if isOwn(t.Source) {
			e.schemas = append(e.schemas, t.Raw)
			continue
		}
		schema := t.Schema
		kind := gjson.Get(t.Raw, "type").Str
		switch {
		case !rawjson.IsObject(schema) && kind == "custom":
			schema = freeText
		case !rawjson.IsObject(schema) && kind != "" && kind != "function":
			continue
		case !rawjson.IsObject(schema):
			schema = noArguments
		case gjson.Get(schema, "type").Str != "object":
			schema = withMember(schema, "type", `"object"`)
		}
		o := new(rawjson.Object).Str("name", e.tools.of(t.Name)).NonEmpty("description", t.Description)
		e.schemas = append(e.schemas, o.Raw("input_schema", schema).String())
	}
}

// withMember sets a member of a valid JSON object and leaves the rest alone.
func withMember(doc, name, value string) string {
	doc = strings.TrimSpace(doc)
	if !gjson.Get(doc, name).Exists() { // a new one goes behind the others, which need not be read
		end := len(strings.TrimRight(doc[:len(doc)-1], " \t\r\n"))
		before := `,"`
		if end == 1 { // there are no others
			before = `"`
		}
		return doc[:end] + before + name + `":` + value + doc[end:]
	}
	d, _ := rawjson.Open(doc, nil)
	d.Set(name, value)
	return string(d.Bytes())
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
	return `{"role":"` + e.role + `","content":` + arrayOf(e.blocks) + "}"
}

func arrayOf(blocks []piece) string {
	return rawjson.ArrayOf(blocks, func(b piece) string { return b.raw })
}

// maxToolName is the length limit of a tool's name, in characters.
const maxToolName = 128

// toolNames gives each tool one name that the API accepts. In it are the names in bytes that
// are sent as they are.
type toolNames map[string]bool

func (n toolNames) of(name string) string {
	if n[name] {
		return name
	}
	return codec.FitPlainName(name, maxToolName)
}

// callNames gives each call an id that the API accepts (^[a-zA-Z0-9_-]+$) and that no
// other call has. The same ids in the same order always get the same names.
type callNames struct {
	asTheyAre bool // each name is the id, and nothing need be remembered

	taken   map[string]bool
	given   map[string]string   // the last name given for an id
	pending map[string][]string // names of calls that are not answered yet
	last    map[string]int      // the last number tried behind a name
}

// reserve keeps an id for bytes that are sent as they are.
func (n *callNames) reserve(id string) { n.taken[id], n.given[id] = true, id }

// newName returns a name for a call that nothing else has.
func (n *callNames) newName(id string) string {
	base := strings.Map(func(r rune) rune {
		if r < 0x80 && codec.PlainByte(byte(r)) {
			return r
		}
		return '_'
	}, cmp.Or(id, "call"))
	name := base
	for n.taken[name] {
		// Numbering goes on where it stopped: a model that gives all its calls
		// one id must not make this slow.
		n.last[base]++
		name = base + "_" + strconv.Itoa(n.last[base]+1)
	}
	n.taken[name], n.given[id] = true, name
	return name
}

// call names a call. sent says that its bytes are sent as they are.
func (n *callNames) call(id string, sent bool) string {
	name := id
	switch {
	case n.asTheyAre:
		return id
	case sent:
		n.given[id] = id
	default:
		name = n.newName(id)
	}
	n.pending[id] = append(n.pending[id], name)
	return name
}

// result returns the name of the call that a result answers: the first open one with its
// id, else the last one.
func (n *callNames) result(id string) string {
	if n.asTheyAre {
		return id
	}
	if open := n.pending[id]; len(open) > 0 {
		n.pending[id] = open[1:]
		return open[0]
	}
	if name, ok := n.given[id]; ok {
		return name
	}
	return n.newName(id)
}
