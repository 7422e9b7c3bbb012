package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// ErrShape is wrapped by errors about a document that is no JSON object, or where something
// on a path is none.
var ErrShape = errors.New("not a JSON object")

// Member returns the value at a path of names in a JSON object with comments and trailing
// commas, as it stands there, "" if there is none, and how many names of the path there are.
// Of two members of one name the last counts, as for the agents that read such files. A blank
// document is an empty object. The error wraps ErrShape.
func Member(doc string, path ...string) (value string, names int, err error) {
	_, m, names, err := locate(doc, path)
	if err != nil || names < len(path) {
		return "", names, err
	}
	return doc[m.value:m.end], names, nil
}

// SetMember returns a JSON object, in which comments and trailing commas may stand, with a
// value at a path of names. It makes the objects that are missing; all other bytes stay. A
// blank document is an empty object. The error wraps ErrShape.
func SetMember(doc, value string, path ...string) (string, error) {
	if strings.TrimSpace(doc) == "" {
		doc = "{}\n"
	}
	o, m, names, err := locate(doc, path)
	switch {
	case err != nil:
		return "", err
	case names < len(path):
		return o.insert(path[names:], value), nil
	}
	return doc[:m.value] + indented(value, lineIndent(doc, m.key)) + doc[m.end:], nil
}

// RemoveMember returns a JSON object, in which comments and trailing commas may stand,
// without the member at a path of names, and without the objects above it that are empty
// then, but those of the first keep names. All other bytes stay. The error wraps ErrShape.
func RemoveMember(doc string, keep int, path ...string) (string, error) {
	o, m, names, err := locate(doc, path)
	if err != nil || names < len(path) {
		return doc, err
	}
	out, empty := o.without(m)
	if above := len(path) - 1; empty && above > keep {
		return RemoveMember(out, keep, path[:above]...)
	}
	return out, nil
}

// locate follows a path of names as far as there are any: to the last object, and to the member in
// it if all names are there.
func locate(doc string, path []string) (o object, m member, names int, err error) {
	if strings.TrimSpace(doc) == "" {
		return o, m, 0, nil
	}
	for o, err = rootObject(doc); err == nil; o, err = objectAt(doc, m.value, m.end) {
		ok := false
		if m, ok = o.find(path[names]); !ok {
			return o, m, names, nil
		}
		if names++; names == len(path) {
			return o, m, names, nil
		}
	}
	return o, m, 0, err
}

// object is a JSON object in a document: the places of its brackets, and its members.
type object struct {
	doc         string
	open, close int
	members     []member
}

// member is a member of an object: the places of its name and its value, and behind the
// comma after it, 0 without one.
type member struct {
	name            string
	key, value, end int
	comma           int
}

// find returns the last member of a name, which is the one that counts.
func (o object) find(name string) (found member, ok bool) {
	for _, m := range slices.Backward(o.members) {
		if m.name == name {
			return m, true
		}
	}
	return found, false
}

func rootObject(doc string) (object, error) {
	plain := blank(blank(doc, true), false)
	if err := rawjson.Check(plain); err != nil {
		return object{}, fmt.Errorf("%w: %w", ErrShape, err)
	}
	return objectAt(doc, len(plain)-len(strings.TrimLeft(plain, " \t\r\n")), len(strings.TrimRight(plain, " \t\r\n")))
}

// objectAt reads the members of the object between two places of a document that is valid.
func objectAt(doc string, at, end int) (object, error) {
	commas := blank(doc, true)
	plain := blank(commas, false)
	v := gjson.Parse(plain[at:end])
	if !v.IsObject() {
		return object{}, fmt.Errorf("line %d: %w", 1+strings.Count(doc[:at], "\n"), ErrShape)
	}
	o := object{doc: doc, open: at, close: end - 1}
	v.ForEach(func(name, value gjson.Result) bool {
		m := member{name: name.Str, key: at + name.Index, value: at + value.Index, end: at + value.Index + len(value.Raw)}
		rest := strings.TrimLeft(commas[m.end:], " \t\r\n")
		if strings.HasPrefix(rest, ",") {
			m.comma = len(commas) - len(rest) + 1
		}
		o.members = append(o.members, m)
		return true
	})
	return o, nil
}

// blank returns a document with white space for its comments and a mark at its beginning, or for
// the commas before closing brackets; all else keeps its place.
func blank(doc string, comments bool) string {
	out := []byte(doc)
	clear := func(from, to int) {
		for ; from < to; from++ {
			if out[from] != '\n' {
				out[from] = ' '
			}
		}
	}
	at, comma, before := 0, -1, byte(0) // the last comma, and what stands before it or here
	if comments && strings.HasPrefix(doc, "\ufeff") {
		at = len("\ufeff")
		clear(0, at)
	}
	for at < len(doc) {
		from, rest := at, doc[at:]
		at++
		switch c := rest[0]; {
		case comments && strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			at = from + len(line)
			clear(from, at)
		case comments && strings.HasPrefix(rest, "/*"):
			if n := strings.Index(rest[2:], "*/"); n >= 0 {
				at = from + n + 4
				clear(from, at)
			}
		case c <= ' ':
		case c == ',' && strings.IndexByte("{[,", before) < 0:
			comma, before = from, c
		default:
			if (c == '}' || c == ']') && comma >= 0 && !comments {
				clear(comma, comma+1)
			}
			comma, before = -1, c
			if c == '"' {
				for ; at < len(doc) && doc[at] != '"'; at++ {
					if doc[at] == '\\' {
						at++
					}
				}
				at++
			}
		}
	}
	return string(out)
}

// insert adds a member at the end: the last names of the path with the value.
func (o object) insert(path []string, value string) string {
	for i := len(path) - 1; i > 0; i-- {
		value = "{" + rawjson.Quote(path[i]) + ":" + value + "}"
	}
	body := o.doc[o.open+1 : o.close]
	end := o.open + 1 + len(strings.TrimRight(body, " \t\r\n"))
	comma, own, last := "", "", o.open+1
	if n := len(o.members); n > 0 {
		if last = o.members[n-1].end; o.members[n-1].comma == 0 {
			comma = ","
		} else {
			own = "," // as the last one has it
		}
		if !strings.Contains(body, "\n") { // on one line
			return o.doc[:last] + comma + o.doc[last:end] + " " + rawjson.Quote(path[0]) + ": " + value + own + o.doc[end:]
		}
	}
	outer := lineIndent(o.doc, o.open)
	inner, close := outer+"  ", ""
	if n := len(o.members); n > 0 {
		inner = lineIndent(o.doc, o.members[n-1].key)
	} else if strings.HasPrefix(outer, "\t") {
		inner = outer + "\t"
	}
	if !strings.Contains(o.doc[end:o.close], "\n") {
		close = "\n" + outer
	}
	return o.doc[:last] + comma + o.doc[last:end] + "\n" + inner + rawjson.Quote(path[0]) + ": " + indented(value, inner) + own + close + o.doc[end:]
}

// without takes a member out; empty reports whether nothing is left in the object.
func (o object) without(m member) (out string, empty bool) {
	from := len(strings.TrimRight(o.doc[:m.key], " \t\r\n"))
	to := m.end
	if m.comma > 0 {
		to = m.comma
	}
	line, below, _ := strings.Cut(o.doc[to:], "\n")
	if above := o.doc[strings.LastIndexByte(o.doc[:from], '\n')+1 : from]; strings.Contains(above, "//") && (strings.TrimSpace(line) != "" || below == "") {
		from = m.key // what follows on the line would become a part of the comment
	}
	head := o.doc[:from]
	if last := o.members[len(o.members)-1]; m == last && m.comma == 0 && len(o.members) > 1 {
		before := o.members[len(o.members)-2] // its comma goes
		head = o.doc[:before.comma-1] + o.doc[before.comma:from]
	}
	tail := o.doc[to:]
	if strings.TrimSpace(head[o.open+1:]+o.doc[to:o.close]) == "" {
		return head[:o.open+1] + o.doc[o.close:], true
	}
	return head + tail, false
}

// lineIndent is the white space at the beginning of the line of a place.
func lineIndent(doc string, at int) string {
	line := doc[strings.LastIndexByte(doc[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indented writes a value over several lines, the later ones behind an indent. One that has
// several lines already stays as it is.
func indented(value, indent string) string {
	if strings.Contains(value, "\n") {
		return value
	}
	unit := "  "
	if strings.HasPrefix(indent, "\t") {
		unit = "\t"
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(value), indent, unit) != nil {
		return value
	}
	return b.String()
}
