package references

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Freshness counts values that changed: those that a prompt shows as they are now, and
// those of which it shows only an old one.
type Freshness struct{ Current, Old float64 }

func (f *Freshness) Add(x Freshness) {
	f.Current += x.Current
	f.Old += x.Old
}

// Rate is the share of old values; 0 for none.
func (f Freshness) Rate() float64 {
	if f.Old == 0 {
		return 0
	}
	return f.Old / (f.Old + f.Current)
}

// changingValue is a value that results of the same call told differently at different
// times; the last one is true.
type changingValue struct {
	key string
	// about are words of the arguments. In other text one of them must stand beside the
	// value.
	about []string
	told  []toldValue // in order
}

// toldValue is a value and the message that told it.
type toldValue struct {
	pos   int
	value string
}

// The bounds of what counts as the value of a key.
const (
	longestValue = 80   // bytes
	mostKeys     = 1000 // a result with more is plain text
	leastAbout   = 4    // bytes of a word of the arguments
)

// changingValues finds the values of a session that change: keys that stand once in the
// result of a call, and with another value in a later result of the same call.
func changingValues(all []answer) []changingValue {
	type value struct{ source, key string }
	found := map[value]int{} // into out
	var out []changingValue
	for _, a := range all {
		source, asked := a.call.Name+"\n"+a.call.Arguments, a.call.Arguments
		if a.file != "" && toolclass.ClassOf(a.call.Name) == toolclass.Read {
			source, asked = a.file, a.file // whatever part of a file is read, it is the same file
		}
		if asked == "" {
			continue
		}
		if entity, ok := entityOf(a.result); ok {
			source, asked = entity, entity
		}
		for _, f := range fieldsOf(a.result) {
			at, ok := found[value{source, f.key}]
			if !ok {
				at = len(out)
				found[value{source, f.key}] = at
				out = append(out, changingValue{key: f.key, about: tellingWords(asked)})
			}
			out[at].told = append(out[at].told, toldValue{a.pos, f.value})
		}
	}
	return slices.DeleteFunc(out, func(c changingValue) bool { return !c.differs(c.told[0].value) })
}

// differs reports whether any other value was told.
func (c *changingValue) differs(value string) bool {
	return slices.ContainsFunc(c.told, func(t toldValue) bool { return t.value != value })
}

// valueBefore is the value with only what was told before a position.
func (c changingValue) valueBefore(at int) changingValue {
	n, _ := slices.BinarySearchFunc(c.told, at, func(t toldValue, at int) int { return cmp.Compare(t.pos, at) })
	c.told = c.told[:n]
	return c
}

// lastValue is the value that was told last.
func (c *changingValue) lastValue() string { return c.told[len(c.told)-1].value }

// field is a key and its value.
type field struct{ key, value string }

// fieldsOf are the keys that stand once in a result: members of JSON, and lines
// such as "status: paid" and "status = paid".
func fieldsOf(r thread.ToolResult) []field {
	var all []field
	for _, p := range r.Content {
		text, ok := p.(thread.Text)
		if !ok {
			continue
		}
		if trimmed := strings.TrimSpace(text.Text); rawjson.Valid(trimmed) && strings.HasPrefix(trimmed, "{") {
			members(gjson.Parse(trimmed), 0, &all)
			continue
		}
		for line := range strings.Lines(text.Text) {
			line = withoutLineNumber(line)
			key, value, ok := strings.Cut(line, ":")
			if !ok {
				key, value, ok = strings.Cut(line, "=")
			}
			key = strings.Trim(key, " \t\"'`-*")
			key, value = key[strings.LastIndexAny(key, " \t")+1:], strings.Trim(value, " \t\r\n\"'`,;")
			if ok && isPlainKey(key) && value != "" && len(value) <= longestValue {
				all = append(all, field{key, value})
			}
		}
	}
	count := map[string]int{}
	for _, f := range all {
		count[f.key]++
	}
	if len(count) > mostKeys {
		return nil
	}
	return slices.DeleteFunc(all, func(f field) bool { return count[f.key] > 1 })
}

// withoutLineNumber is a line without the number that tools put before lines of files.
func withoutLineNumber(line string) string {
	rest := strings.TrimLeft(line, " ")
	figures := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if figures == 0 {
		return line
	}
	for _, mark := range []string{"→", "\t", "|"} {
		if after, ok := strings.CutPrefix(rest[figures:], mark); ok {
			return after
		}
	}
	return line
}

// entityOf is the id at the head of a JSON object, which names what a result is about:
// any call that returns the same object tells its values.
func entityOf(r thread.ToolResult) (entity string, ok bool) {
	for _, p := range r.Content {
		text, is := p.(thread.Text)
		if !is || !strings.HasPrefix(strings.TrimSpace(text.Text), "{") || !rawjson.Valid(text.Text) {
			continue
		}
		gjson.Parse(text.Text).ForEach(func(key, v gjson.Result) bool {
			name := strings.ToLower(key.Str)
			ok = (strings.HasSuffix(name, "id") || name == "number") && v.String() != "" && len(v.String()) <= longestValue
			entity = v.String()
			return false
		})
		return entity, ok
	}
	return "", false
}

func members(v gjson.Result, depth int, all *[]field) {
	v.ForEach(func(key, x gjson.Result) bool {
		switch {
		case x.IsObject() || x.IsArray():
			if depth < maxDepth {
				members(x, depth+1, all)
			}
		case isPlainKey(key.Str) && x.Type != gjson.Null && x.String() != "" && len(x.String()) <= longestValue:
			*all = append(*all, field{key.Str, x.String()})
		}
		return true
	})
}

// isPlainKey reports whether a text is a key: one word.
func isPlainKey(key string) bool {
	if len(key) < 2 || len(key) > 40 {
		return false
	}
	for i := range len(key) {
		if !isWordByte[key[i]] && key[i] != '-' && key[i] != '.' {
			return false
		}
	}
	return true
}

// tellingWords are the values in the arguments that are neither short nor long.
func tellingWords(arguments string) []string {
	text, _ := values(arguments)
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= leastAbout && len(line) <= longestValue {
			all = append(all, line)
		}
	}
	return all
}

// Freshness counts the values that changed before the moment by what the prompt shows of
// them. Kept results count by their position; in other text a value counts that follows
// its key, in a message that names what it is about. Where the old and the current value
// are both there, their order tells, and it counts as current.
func (m *Moment) Freshness(s *Shown) Freshness {
	var f Freshness
	var texts []string
	for i := range s.Other {
		text, _ := MessageLines(&s.Other[i])
		texts = append(texts, text)
	}
	for _, c := range m.changing {
		if c = c.valueBefore(m.At); len(c.told) == 0 || !c.differs(c.lastValue()) {
			continue
		}
		now := c.lastValue()
		current, old := false, false
		for _, t := range c.told {
			if _, kept := slices.BinarySearch(s.Kept, t.pos); kept {
				current = current || t.value == now
				old = old || t.value != now
			}
		}
		for _, text := range texts {
			if current || !slices.ContainsFunc(c.about, func(w string) bool { return strings.Contains(text, w) }) {
				continue
			}
			for _, t := range c.told {
				if hasValue(text, c.key, t.value) {
					current = current || t.value == now
					old = old || t.value != now
				}
			}
		}
		switch {
		case current:
			f.Current++
		case old:
			f.Old++
		}
	}
	return f
}

// hasValue reports whether a text gives the key this value: the value follows the key,
// with nothing but punctuation between them.
func hasValue(text, key, value string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], key)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(key)
		if atWordBoundaries(text, at, end) {
			rest := strings.TrimLeft(text[end:min(len(text), end+len(value)+8)], " \t\"'`:=")
			if strings.HasPrefix(rest, value) && (len(rest) == len(value) || !isWordByte[rest[len(value)]] || !isWordByte[value[len(value)-1]]) {
				return true
			}
		}
		at = end
	}
}

// Superseded reports whether every mention of an identifier before the moment is out of
// date: an old value, or a reading of a file that was read or changed again since.
func (m *Moment) Superseded(r *Reference) bool {
	if m.isOldValue(r.Norm) {
		return true
	}
	for _, s := range r.Seen {
		if s.Pos >= m.Tail {
			break
		}
		f, ok := m.trail.readings[s.Pos]
		if !ok {
			return false
		}
		when := m.trail.when[f]
		next, _ := slices.BinarySearch(when, s.Pos)
		if next == len(when) || when[next] >= m.At {
			return false
		}
	}
	return true
}

// isOldValue reports whether this was the value of something that changed before the
// moment, and is no current value.
func (m *Moment) isOldValue(value string) bool {
	old := false
	for _, c := range m.changing {
		c = c.valueBefore(m.At)
		if len(c.told) > 0 && c.lastValue() == value {
			return false
		}
		old = old || slices.ContainsFunc(c.told, func(t toldValue) bool { return t.value == value })
	}
	return old
}
