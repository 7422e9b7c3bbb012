package anthropic

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/internal/codec"
)

// maxMarks is how many cache marks a request may carry.
// https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching
const maxMarks = 4

// markableBlocks are the blocks that may carry a cache mark. Thinking never may, and
// signed vendor blocks may refuse it.
var markableBlocks = scan.WordSet("text image document tool_use tool_result search_result")

// place is the position of a mark. In document order, tools come first, then system, then
// the blocks of the messages.
type place struct {
	list  int // 0 tools, 1 system, 2 and up the elements
	block int // -1 for the element's string content
}

func (p place) before(o place) bool {
	return p.list < o.list || p.list == o.list && p.block < o.block
}

// mark is a cache mark with its time to live.
type mark struct {
	place
	ttl string
}

// chooseMarks decides which of the prompt's cache points get a mark. Marks that are already
// there count first. whole is the time to live of a mark on the request itself, or empty.
func (e *encoder) chooseMarks(whole string) []mark {
	if len(e.p.CachePoints) == 0 {
		return nil
	}
	there := e.existingMarks()
	if whole != "" {
		there = append(there, mark{place{len(e.elements) + 2, 0}, whole})
	}
	var added []mark
	for _, point := range e.p.CachePoints {
		if len(there) >= maxMarks {
			break
		}
		at, ok := e.placeOf(point)
		if !ok || slices.ContainsFunc(there, func(m mark) bool { return m.place == at }) {
			continue
		}
		m := mark{at, fittingTTL(there, at, point.TTL)}
		there, added = append(there, m), append(added, m)
	}
	return added
}

// fittingTTL returns the time to live for a mark among the others. The API wants longer
// ones before shorter ones. So a long one after a short one is shortened, and a short one
// before a long one is lengthened; that costs nothing, because the later mark stores the
// same prefix for the longer time anyway.
func fittingTTL(marks []mark, at place, ttl string) string {
	for _, m := range marks {
		switch long := m.ttl == "1h"; {
		case long && at.before(m.place):
			return "1h"
		case !long && m.place.before(at) && ttl == "1h":
			ttl = "5m"
		}
	}
	return ttl
}

// existingMarks lists the marks that the bytes carry already.
func (e *encoder) existingMarks() []mark {
	var list []mark
	find := func(at, block int, raw string) {
		for _, t := range marksIn(gjson.Parse(raw), readLevels) {
			list = append(list, mark{place{at, block}, t})
		}
	}
	for n, raws := range [][]string{e.schemas, e.system} {
		for i, raw := range raws {
			find(n, i, raw)
		}
	}
	for i := range e.elements {
		el := &e.elements[i]
		if el.raw != "" && !slices.ContainsFunc(e.p.Messages[el.first:el.end], func(m thread.Message) bool { return slices.ContainsFunc(m.Parts, mayHaveMark) }) {
			continue
		}
		for k, b := range e.pieces(el) {
			find(i+2, k, b.raw)
		}
	}
	return list
}

// mayHaveMark reports whether the block that a part was read from has a mark, or may have one that was not read.
func mayHaveMark(part thread.Part) bool {
	_, unread := part.(thread.Opaque)
	r, _ := part.(thread.ToolResult)
	return unread || part.From().Cache != "" || slices.ContainsFunc(r.Content, mayHaveMark)
}

// pieces returns the blocks of an element and the messages they belong to. A frame has one
// block for each part of its messages, and none if its content is a string.
func (e *encoder) pieces(el *element) []piece {
	content := gjson.Get(el.raw, "content")
	if el.raw == "" || !content.IsArray() {
		return el.blocks
	}
	var list []piece
	message, parts := el.first, 0
	for v := range rawjson.Items(content) {
		for message < el.end-1 && parts == len(e.p.Messages[message].Parts) {
			message, parts = message+1, 0
		}
		parts++
		list = append(list, piece{v.Raw, message})
	}
	return list
}

// marksIn lists the marks of a block, those on blocks inside a tool result
// first.
func marksIn(v gjson.Result, levels int) []string {
	if levels == 0 || !v.IsObject() || !strings.Contains(v.Raw, "cache_control") {
		return nil
	}
	b := readBlock(v)
	var list []string
	for inner := range rawjson.Items(b.Get("content")) {
		list = append(list, marksIn(inner, levels-1)...)
	}
	if t := codec.CacheTTL(b.Get("cache_control")); t != "" {
		list = append(list, t)
	}
	return list
}

// placeOf finds the last block of a message, or of system and tools, that may
// carry a mark.
func (e *encoder) placeOf(point prompt.CachePoint) (place, bool) {
	if point.After < 0 {
		for i, block := range slices.Backward(e.system) {
			if canMark(block) {
				return place{1, i}, true
			}
		}
		for i, tool := range slices.Backward(e.schemas) {
			// A tool that is loaded later is not part of the prefix.
			if !gjson.Get(tool, "defer_loading").Bool() {
				return place{0, i}, true
			}
		}
		return place{}, false
	}
	for i := range e.elements {
		el := &e.elements[i]
		if point.After >= el.first && point.After < el.end {
			return e.placeIn(el, i+2, point.After)
		}
	}
	return place{}, false
}

func (e *encoder) placeIn(el *element, list, message int) (place, bool) {
	if content := gjson.Get(el.raw, "content"); content.Type == gjson.String {
		return place{list, -1}, !isBlank(content.Str)
	}
	for k, b := range slices.Backward(e.pieces(el)) {
		if b.message == message && canMark(b.raw) {
			return place{list, k}, true
		}
	}
	return place{}, false
}

func canMark(raw string) bool {
	if strings.HasPrefix(raw, `"`) {
		return !isBlank(gjson.Parse(raw).Str)
	}
	// The first byte of most texts shows that they are not blank, which saves unescaping
	// the whole text.
	if text, ok := strings.CutPrefix(raw, `{"type":"text","text":"`); ok && text[0] > ' ' && text[0] < 0x7f && text[0] != '"' && text[0] != '\\' {
		return true
	}
	kind := gjson.Get(raw, "type").Str
	return markableBlocks[kind] && (kind != "text" || !isBlank(gjson.Get(raw, "text").Str))
}

func (e *encoder) setMarks(marks []mark) {
	for _, m := range marks {
		value := `{"type":"ephemeral"}`
		if m.ttl != "" {
			value = rawjson.NewTypedObject("ephemeral").Str("ttl", m.ttl).String()
		}
		switch m.list {
		case 0:
			e.schemas[m.block] = withMember(e.schemas[m.block], "cache_control", value)
		case 1:
			e.system[m.block] = withMember(asBlock(e.system[m.block]), "cache_control", value)
		default:
			e.setMark(&e.elements[m.list-2], m.block, value)
		}
	}
}

// setMark sets the mark of a block; -1 is string content.
func (e *encoder) setMark(el *element, block int, value string) {
	blocks := e.pieces(el)
	if block < 0 {
		blocks, block = []piece{{raw: asBlock(gjson.Get(el.raw, "content").Raw)}}, 0
	}
	blocks[block].raw = withMember(blocks[block].raw, "cache_control", value)
	if el.raw != "" {
		el.raw = withMember(el.raw, "content", arrayOf(blocks))
	}
}
