package strategy

import (
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// output reports whether the message at i is output rather than words: a tool result, or
// what a harness put in the user's name.
func (v *View) output(i int) bool {
	m := &v.messages[i]
	first, last := v.Pairs.Unit(i)
	return first == last && (m.Role == thread.Tool || m.IsAdded())
}

// results proposes the outputs before the protected tail that judge accepts, superseded
// ones first and then the oldest, and what the user attached last. judge returns how many tokens of an output would stay,
// or a negative number.
func (v *View) results(name string, judge func(i int, tool string) (keep int, reason string)) []Proposal {
	var stale, old, attached []Proposal
	for i := range v.Tail {
		if !v.output(i) || !v.Shrinkable(i) {
			continue
		}
		r, _ := v.messages[i].Result()
		keep, reason := judge(i, r.Tool)
		if keep < 0 || keep >= v.now[i] {
			continue
		}
		p := Proposal{Strategy: name, Span: v.span([]int{i}), EstimatedTokensFreed: v.now[i] - keep, Reason: reason, Room: keep}
		switch {
		case v.superseded[i] != "":
			p.Reason = v.superseded[i]
			stale = append(stale, p)
		case v.messages[i].Kind == thread.Attached:
			attached = append(attached, p)
		default:
			old = append(old, p)
		}
	}
	return slices.Concat(stale, old, attached)
}

// subject is what the call of the result at i was about, in brackets after a space; empty
// if unknown.
func (v *View) subject(i int) string {
	if _, ok := v.messages[i].Result(); !ok {
		return ""
	}
	v.keyFields(i)
	var about []string
	for _, name := range []string{"path", "url", "command", "pattern", "description"} {
		if text, ok := v.fields[i][name].(string); ok {
			about = append(about, clip.Line(text, maxSubject))
		}
	}
	if len(about) == 0 {
		return ""
	}
	return " (" + strings.Join(about, ", ") + ")"
}

// maxSubject bounds each part of a subject, in bytes.
const maxSubject = 80

// noFields are those of results that have none. Nobody writes to it.
var noFields = thread.Fields{}

// keyFields are the fields that survive in place of the result at i, without what the call
// beside it says anyway.
func (v *View) keyFields(i int) thread.Fields {
	r, _ := v.messages[i].Result()
	call := v.call(i)
	if v.fields[i] == nil {
		if v.fields[i] = v.Tools.KeyFields(call, r); len(v.fields[i]) == 0 {
			v.fields[i] = noFields
		}
	}
	fields := maps.Clone(v.fields[i])
	if v.inPlace(i) {
		maps.DeleteFunc(fields, func(name string, value any) bool {
			_, declared := r.KeyFields[name]
			return !declared && said(call, value)
		})
	}
	return fields
}

// preserved are the key fields of the result at i that its envelope lacks. Of an ephemeral
// result only its error stays.
func (v *View) preserved(i int) thread.Fields {
	r, _ := v.messages[i].Result()
	fields := v.keyFields(i)
	for name := range r.KeyFields {
		delete(fields, name)
	}
	if v.Tools.Durability(r) == thread.Ephemeral {
		maps.DeleteFunc(fields, func(name string, _ any) bool { return name != "error" && name != "exit_code" })
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// said reports whether a call's arguments show a value already.
func said(call thread.ToolCall, value any) bool {
	if text, ok := value.(string); ok && unescaped(text) {
		return strings.Contains(call.Arguments, text)
	}
	shown := canonjson.Spaced(value)
	return strings.Contains(call.Arguments, strings.Trim(shown, `"`))
}

// unescaped reports whether a text is written in JSON as it is.
func unescaped(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// storable reports whether an artifact can hold the output at i: it is text, and nothing
// else. Behind a pointer a picture would be lost, although the pointer promises the full
// content.
func (v *View) storable(i int) bool {
	m, some := &v.messages[i], false
	for _, p := range contentOf(m) {
		text, whole := textOf(p)
		// Of what a harness said, outputOf takes only texts.
		if _, plain := p.(thread.Text); !whole || !plain && m.Role != thread.Tool {
			return false
		}
		some = some || text != ""
	}
	return some
}

// textOf is the text of a part of an output. whole is false for what is more than its
// text, such as a picture.
func textOf(p thread.Part) (text string, whole bool) {
	switch p := p.(type) {
	case thread.Text:
		return p.Text, true
	case thread.Media:
		return p.Text, p.Text != ""
	case thread.Opaque:
		return p.Text, p.Text != ""
	}
	return "", true
}

// contentOf is what a tool result, or a harness in the user's name, holds; nil for
// anything else.
func contentOf(m *thread.Message) []thread.Part {
	if r, ok := m.Result(); ok {
		return r.Content
	}
	if m.IsAdded() {
		return m.Parts
	}
	return nil
}

// outputOf is the text of a tool result, or of what a harness said in the user's name;
// empty for anything else.
func outputOf(m *thread.Message) (tool, text string) {
	if r, ok := m.Result(); ok {
		return r.Tool, r.Text()
	}
	if m.IsAdded() {
		return "this message", m.Text()
	}
	return "", ""
}
