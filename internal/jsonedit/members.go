package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ErrShape is wrapped by errors about a document that is no JSON object, or where something
// on a path is none.
var ErrShape = errors.New("not a JSON object")

// Member returns the value at a path of names in a JSON object with comments and trailing
// commas, as it stands there, "" if there is none, and how many names of the path there are.
// Of two members of one name the last counts, as for the agents that read such files. The
// error wraps ErrShape.
func Member(doc string, path ...string) (value string, names int, err error) {
	o, err := rootObject(doc)
	for i := 0; err == nil; i++ {
		m, ok := o.find(path[i])
		if !ok {
			return "", i, nil
		}
		if i == len(path)-1 {
			return doc[m.value:m.end], i + 1, nil
		}
		o, err = objectAt(doc, m.value)
	}
	return "", 0, err
}

// SetMember returns a JSON object, in which comments and trailing commas may stand, with a
// value at a path of names. It makes the objects that are missing; all other bytes stay. A
// blank document is an empty object. The error wraps ErrShape.
func SetMember(doc, value string, path ...string) (string, error) {
	if strings.TrimSpace(doc) == "" {
		doc = "{}\n"
	}
	o, err := rootObject(doc)
	for i := 0; err == nil; i++ {
		m, ok := o.find(path[i])
		switch {
		case !ok:
			return o.insert(path[i:], value), nil
		case i == len(path)-1:
			return doc[:m.value] + indented(value, lineIndent(doc, m.key)) + doc[m.end:], nil
		}
		o, err = objectAt(doc, m.value)
	}
	return "", err
}

// RemoveMember returns a JSON object, in which comments and trailing commas may stand,
// without the member at a path of names, and without the objects above it that are empty
// then, but those of the first keep names. All other bytes stay. The error wraps ErrShape.
func RemoveMember(doc string, keep int, path ...string) (string, error) {
	o, err := rootObject(doc)
	for _, name := range path[:len(path)-1] {
		if err != nil {
			return "", err
		}
		m, ok := o.find(name)
		if !ok {
			return doc, nil
		}
		o, err = objectAt(doc, m.value)
	}
	if err != nil {
		return "", err
	}
	m, ok := o.find(path[len(path)-1])
	if !ok {
		return doc, nil
	}
	out, empty := o.without(m)
	if above := len(path) - 1; empty && above > keep {
		return RemoveMember(out, keep, path[:above]...)
	}
	return out, nil
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

func (o object) find(name string) (found member, ok bool) {
	for _, m := range o.members {
		if m.name == name {
			found, ok = m, true
		}
	}
	return found, ok
}

// insert adds a member at the end: the last names of the path with the value.
func (o object) insert(path []string, value string) string {
	for i := len(path) - 1; i > 0; i-- {
		value = "{" + quoted(path[i]) + ":" + value + "}"
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
			return o.doc[:last] + comma + o.doc[last:end] + " " + quoted(path[0]) + ": " + value + own + o.doc[end:]
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
	return o.doc[:last] + comma + o.doc[last:end] + "\n" + inner + quoted(path[0]) + ": " + indented(value, inner) + own + close + o.doc[end:]
}

// without takes a member out; empty reports whether nothing is left in the object.
func (o object) without(m member) (out string, empty bool) {
	from := len(strings.TrimRight(o.doc[:m.key], " \t\r\n"))
	to := m.end
	if m.comma > 0 {
		to = m.comma
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

// rootObject reads the members of a whole document.
func rootObject(doc string) (object, error) {
	s := &scanner{doc: doc}
	s.at = len(doc) - len(strings.TrimPrefix(doc, "\ufeff"))
	o, err := s.object()
	if err != nil {
		return o, err
	}
	if s.skip(); s.at < len(doc) {
		return o, s.wrong("the end")
	}
	return o, nil
}

func objectAt(doc string, at int) (object, error) { return (&scanner{doc: doc, at: at}).object() }

// scanner reads JSON with comments. It reads each byte of an object once.
type scanner struct {
	doc string
	at  int
}

func (s *scanner) wrong(want string) error {
	return fmt.Errorf("line %d: %w: want %s", 1+strings.Count(s.doc[:min(s.at, len(s.doc))], "\n"), ErrShape, want)
}

func (s *scanner) peek() byte {
	if s.at < len(s.doc) {
		return s.doc[s.at]
	}
	return 0
}

// skip passes white space and comments.
func (s *scanner) skip() {
	for s.at < len(s.doc) {
		rest := s.doc[s.at:]
		switch {
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			s.at += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return // what comes next is wrong
			}
			s.at += n + 4
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) object() (object, error) {
	s.skip()
	o := object{doc: s.doc, open: s.at}
	if s.peek() != '{' {
		return o, s.wrong("{")
	}
	s.at++
	for {
		s.skip()
		if s.peek() == '}' {
			o.close = s.at
			s.at++
			return o, nil
		}
		if n := len(o.members); n > 0 && o.members[n-1].comma == 0 {
			return o, s.wrong(", or }")
		}
		m := member{key: s.at}
		if s.peek() != '"' || !s.text() || json.Unmarshal([]byte(s.doc[m.key:s.at]), &m.name) != nil {
			return o, s.wrong("a name in quotes")
		}
		if s.skip(); s.peek() != ':' {
			return o, s.wrong(":")
		}
		s.at++
		s.skip()
		if m.value = s.at; !s.passValue() {
			return o, s.wrong("a value")
		}
		m.end = s.at
		if s.skip(); s.peek() == ',' {
			s.at++
			m.comma = s.at
		}
		o.members = append(o.members, m)
	}
}

// text passes a string.
func (s *scanner) text() bool {
	for s.at++; s.at < len(s.doc); s.at++ {
		switch s.doc[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return true
		case '\n':
			return false
		}
	}
	return false
}

// passValue passes a value: a string, what stands between brackets, or a word.
func (s *scanner) passValue() bool {
	from, depth := s.at, 0
	for s.at < len(s.doc) {
		switch c := s.doc[s.at]; c {
		case '"':
			if !s.text() {
				return false
			}
		case '{', '[':
			depth++
			s.at++
		case '}', ']':
			if depth == 0 {
				return s.at > from
			}
			depth--
			s.at++
		case ',', ' ', '\t', '\r', '\n', '/':
			if depth == 0 {
				return s.at > from
			}
			at := s.at
			if s.skip(); s.at == at {
				s.at++
			}
			continue
		default:
			s.at++
			continue
		}
		if depth == 0 {
			return true
		}
	}
	return false
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

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string cannot fail
	return string(text)
}
