package native

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
)

// The edits of context_management.
const (
	ClearTools    = "clear_tool_uses_20250919"
	ClearThinking = "clear_thinking_20251015"
	Compact       = "compact_20260112"
)

// The documented defaults, in tokens and tool uses.
const (
	clearTrigger   = 100_000
	compactTrigger = 150_000
	keptToolUses   = 3
)

// Edit is one of the edits of context_management, with the defaults filled in.
type Edit struct {
	// Type is ClearTools, ClearThinking or Compact.
	Type string
	// Trigger is when to act: from so many input tokens, or tool uses if ByUses is set. It is 0
	// for ClearThinking.
	Trigger int
	ByUses  bool
	// Keep is how many of the newest tool uses, or turns with thinking, stay. All keeps every
	// turn.
	Keep int
	All  bool
	// AtLeast is how many tokens the edit must clear to be worth it.
	AtLeast int
	// Exclude names tools whose uses stay. Inputs clears the arguments of calls too: those of
	// the tools in InputsOf, or of all if that is nil.
	Exclude  []string
	Inputs   bool
	InputsOf []string
	// Pause answers with the compaction alone. Instructions are for its summary.
	Pause        bool
	Instructions string
}

// Applied is what an edit did.
type Applied struct {
	Type string
	// Cleared counts tool uses, or turns with thinking; Tokens is what they took.
	Cleared, Tokens int
}

// readEdits reads context_management. The validator of package wire/anthropic checks order and
// thresholds.
func readEdits(context gjson.Result, model string) ([]Edit, error) {
	edits := context.Get("edits")
	switch {
	case !context.IsObject():
		return nil, refuse("", "context_management: must be an object")
	case edits.Exists() && edits.Type != gjson.Null && !edits.IsArray():
		return nil, refuse("", "context_management.edits: must be an array")
	}
	var list []Edit
	for i, v := range edits.Array() {
		e, err := readEdit(v, "context_management.edits."+strconv.Itoa(i), model)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(x Edit) bool { return x.Type == e.Type }) {
			return nil, refuse("", "context_management.edits.%d: %s stands there already", i, e.Type)
		}
		list = append(list, e)
	}
	return list, nil
}

func readEdit(v gjson.Result, path, model string) (Edit, error) {
	e := Edit{Type: v.Get("type").Str}
	r := editReader{v: v, path: path}
	switch e.Type {
	case ClearTools:
		e.Trigger, e.Keep = clearTrigger, keptToolUses
		e.ByUses = r.amount("trigger", &e.Trigger, 1, "input_tokens", "tool_uses") == "tool_uses"
		r.amount("keep", &e.Keep, 0, "tool_uses")
		r.amount("clear_at_least", &e.AtLeast, 0, "input_tokens")
		e.Exclude = r.names("exclude_tools")
		if v.Get("clear_tool_inputs").IsArray() {
			e.InputsOf = r.names("clear_tool_inputs")
			e.Inputs = len(e.InputsOf) > 0
		} else {
			e.Inputs = r.boolean("clear_tool_inputs")
		}
	case ClearThinking:
		e.Keep = 1
		switch keep := v.Get("keep"); {
		case isAbsent(keep):
			e.All = keepsThinking(model)
		case keep.Type == gjson.String && keep.Str == "all", keep.Get("type").Str == "all":
			e.All = true
		default:
			r.amount("keep", &e.Keep, 1, "thinking_turns")
		}
	case Compact:
		e.Trigger = compactTrigger
		r.amount("trigger", &e.Trigger, 1, "input_tokens")
		e.Pause = r.boolean("pause_after_compaction")
		if text := v.Get("instructions"); !isAbsent(text) && text.Type != gjson.String {
			r.fail("instructions", "must be a text")
		} else {
			e.Instructions = strings.TrimSpace(text.Str)
		}
	default:
		r.fail("type", "must be one of "+ClearThinking+", "+ClearTools+", "+Compact)
	}
	if r.err != nil {
		return e, r.err
	}
	return e, nil
}

func isAbsent(v gjson.Result) bool { return !v.Exists() || v.Type == gjson.Null }

// editReader reads the members of an edit, and keeps the first error.
type editReader struct {
	v    gjson.Result
	path string
	err  *Refusal
}

func (r *editReader) fail(name, what string) {
	if r.err == nil {
		r.err = refuse("", "%s.%s: %s", r.path, name, what)
	}
}

// amount reads {type, value} into to, and returns the type.
func (r *editReader) amount(name string, to *int, least int, units ...string) string {
	v := r.v.Get(name)
	if isAbsent(v) {
		return ""
	}
	unit, value := v.Get("type").Str, v.Get("value")
	if !v.IsObject() || !slices.Contains(units, unit) || value.Type != gjson.Number || value.Num != float64(int(value.Num)) || int(value.Num) < least {
		r.fail(name, "must have a type of "+strings.Join(units, " or ")+" and a whole value of at least "+strconv.Itoa(least))
		return ""
	}
	*to = int(value.Num)
	return unit
}

func (r *editReader) boolean(name string) bool {
	v := r.v.Get(name)
	if !isAbsent(v) && !v.IsBool() {
		r.fail(name, "must be true or false")
	}
	return v.Bool()
}

func (r *editReader) names(name string) []string {
	v := r.v.Get(name)
	if isAbsent(v) {
		return nil
	}
	var list []string
	for _, n := range v.Array() {
		if n.Type != gjson.String || !v.IsArray() {
			r.fail(name, "must be an array of names of tools")
		}
		list = append(list, n.Str)
	}
	return list
}

// keepsThinking is the documented default of clear_thinking_20251015: models from Opus 4.5 and
// Sonnet 4.6 on keep all thinking, older ones and Haiku that of the last turn.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
func keepsThinking(model string) bool {
	fields := strings.FieldsFunc(model, func(c rune) bool { return c < '0' || c > '9' && c < 'a' || c > 'z' })
	var version []int
	family := ""
	for _, f := range fields {
		if n, err := strconv.Atoi(f); err == nil && n < 100 {
			version = append(version, n)
		}
		if f == "opus" || f == "sonnet" || f == "haiku" || f == "fable" || f == "mythos" {
			family = f
		}
	}
	version = append(version, 0, 0)
	from := map[string][]int{"opus": {4, 5}, "sonnet": {4, 6}, "fable": {0, 0}, "mythos": {0, 0}}[family]
	return from != nil && slices.Compare(version[:2], from) >= 0
}

// clearedResult stands in place of a tool result.
const clearedResult = `"[The result of this call was cleared to make room. Call the tool again if it is needed.]"`

type toolUse struct {
	id, name     string
	call, result blockPlace // result.i is -1 if there is none
}

func (m *Messages) toolUses() []toolUse {
	var list []toolUse
	at := map[string]int{}
	for i, x := range m.messages {
		for k, b := range x.blocks {
			switch b.Get("type").Str {
			case "tool_use":
				at[b.Get("id").Str] = len(list)
				list = append(list, toolUse{id: b.Get("id").Str, name: b.Get("name").Str, call: blockPlace{i, k, b}, result: blockPlace{i: -1}})
			case "tool_result":
				if n, ok := at[b.Get("tool_use_id").Str]; ok {
					list[n].result = blockPlace{i, k, b}
				}
			}
		}
	}
	return list
}

// ClearToolUses applies ClearTools to a request of so many tokens; count counts those of a piece of
// JSON. It returns false if nothing was cleared.
func (m *Messages) ClearToolUses(e Edit, tokens int, count func(string) int) (Applied, bool) {
	if !e.ByUses && tokens <= e.Trigger {
		return Applied{}, false
	}
	m.load()
	uses := m.toolUses()
	if e.ByUses && len(uses) <= e.Trigger || len(uses) <= e.Keep {
		return Applied{}, false
	}
	done := Applied{Type: ClearTools}
	edited := map[int]map[int]string{} // message, block
	put := func(c blockPlace, path, raw string) bool {
		before := c.block.Get(path).Raw
		if before == raw || count(before) <= count(raw) {
			return false
		}
		if edited[c.i] == nil {
			edited[c.i] = map[int]string{}
		}
		edited[c.i][c.k] = jsonedit.Set(c.block.Raw, path, raw)
		done.Tokens += count(before) - count(raw)
		return true
	}
	for _, u := range uses[:len(uses)-e.Keep] {
		if slices.Contains(e.Exclude, u.name) || u.result.i < 0 {
			continue
		}
		cleared := put(u.result, "content", clearedResult)
		if e.Inputs && (e.InputsOf == nil || slices.Contains(e.InputsOf, u.name)) {
			cleared = put(u.call, "input", "{}") || cleared
		}
		if cleared {
			done.Cleared++
		}
	}
	if done.Cleared == 0 || done.Tokens < e.AtLeast {
		return Applied{}, false
	}
	for i, blocks := range edited {
		list := slices.Clone(m.messages[i].blocks)
		for k, text := range blocks {
			list[k] = gjson.Parse(text)
		}
		m.messages[i] = m.messages[i].withBlocks(list)
		m.noteEdit(i)
	}
	return done, true
}

// ClearThinking applies the edit of that name: the newest turns keep their thinking. A turn
// includes its tool calls, so that the loop under way keeps all of its thinking or none. It
// returns false if nothing was cleared.
func (m *Messages) ClearThinking(e Edit, count func(string) int) (Applied, bool) {
	if e.All {
		return Applied{}, false
	}
	m.load()
	var turns [][]int // messages with thinking, by turn
	begun := false
	for i, x := range m.messages {
		switch {
		case x.role == "user" && !slices.ContainsFunc(x.blocks, isToolResult):
			begun = false
		case x.role == "assistant" && slices.ContainsFunc(x.blocks, isThinking):
			if !begun {
				turns = append(turns, nil)
				begun = true
			}
			turns[len(turns)-1] = append(turns[len(turns)-1], i)
		}
	}
	if len(turns) <= e.Keep {
		return Applied{}, false
	}
	done := Applied{Type: ClearThinking}
	for _, turn := range turns[:len(turns)-e.Keep] {
		cleared := false
		for _, i := range turn {
			if n, ok := m.dropThinking(i, count); ok {
				done.Tokens += n
				cleared = true
			}
		}
		if cleared {
			done.Cleared++
		}
	}
	return done, done.Cleared > 0
}

// ClearBoundThinking drops all thinking after the first edit: the newest models refuse thinking if
// anything before it has changed. A message of nothing else, an answer that was cut off, goes
// whole.
func (m *Messages) ClearBoundThinking() {
	if m.firstEdited < 0 {
		return
	}
	for i := len(m.messages) - 1; i >= m.firstEdited; i-- {
		if x := m.messages[i]; x.role == "assistant" && len(x.blocks) > 0 && !slices.ContainsFunc(x.blocks, func(b gjson.Result) bool { return !isThinking(b) }) {
			m.messages = slices.Delete(m.messages, i, i+1)
			m.noteEdit(i)
			continue
		}
		m.dropThinking(i, func(string) int { return 0 })
	}
}

// dropThinking takes the thinking out of a message, unless that would leave the message empty.
func (m *Messages) dropThinking(i int, count func(string) int) (tokens int, ok bool) {
	x := m.messages[i]
	if x.role != "assistant" || !slices.ContainsFunc(x.blocks, isThinking) {
		return 0, false
	}
	var keep []gjson.Result
	for _, b := range x.blocks {
		if isThinking(b) {
			tokens += count(b.Raw)
		} else {
			keep = append(keep, b)
		}
	}
	if len(keep) == 0 {
		return 0, false
	}
	m.messages[i] = x.withBlocks(keep)
	m.noteEdit(i)
	return tokens, true
}

func isThinking(b gjson.Result) bool {
	kind := b.Get("type").Str
	return kind == "thinking" || kind == "redacted_thinking"
}

func isToolResult(b gjson.Result) bool { return b.Get("type").Str == "tool_result" }
