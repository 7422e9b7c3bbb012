package rawjson

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Document is a JSON object whose members can be replaced. All others keep their bytes and
// their place.
type Document struct {
	doc     string
	members []member
}

// member is a member of the object, and its new value if it is changed.
type member struct {
	name     string
	key, end int          // where the member begins and ends
	value    gjson.Result // that was read; none if the member is new
	changed  bool
	text     string
	items    []string // in place of text, for an array
}

// Open reads the members of a document that passed Check. It is false if that is no object.
// name, if not nil, turns keys into names, for keys with more than one spelling.
func Open(doc string, name func(key string) string) (*Document, bool) {
	root := gjson.Parse(doc)
	if !root.IsObject() {
		return nil, false
	}
	if name == nil {
		name = func(key string) string { return key }
	}
	d := &Document{doc: doc}
	root.ForEach(func(key, value gjson.Result) bool {
		d.members = append(d.members, member{name: name(key.Str), key: key.Index, end: value.Index + len(value.Raw), value: value})
		return true
	})
	return d, true
}

func (d *Document) find(name string) int {
	for i := len(d.members) - 1; i >= 0; i-- {
		if d.members[i].name == name {
			return i
		}
	}
	return -1
}

// Get returns the value of a member as it was read; of two with one name, the last. Its
// Index is its place in the document.
func (d *Document) Get(name string) gjson.Result {
	if i := d.find(name); i >= 0 {
		return d.members[i].value
	}
	return gjson.Result{}
}

// FirstDuplicate returns the first of the names that the document has twice; "" for none.
func (d *Document) FirstDuplicate(names ...string) string {
	for i, m := range d.members {
		if slices.Contains(names, m.name) && d.find(m.name) != i {
			return m.name
		}
	}
	return ""
}

// Set sets the value of a member, and adds a missing one at the end. The value "" removes
// the member.
func (d *Document) Set(name, value string) { d.set(member{name: name, text: value}) }

// SetArray sets a member to an array of values. An array of the same values keeps its bytes.
func (d *Document) SetArray(name string, values []string) {
	switch {
	case IsArrayOf(d.Get(name), values):
	case len(values) == 0:
		d.Set(name, "[]")
	default:
		d.set(member{name: name, items: values})
	}
}

func (d *Document) set(to member) {
	to.changed = true
	i := d.find(to.name)
	if i < 0 {
		d.members = append(d.members, to)
		return
	}
	to.key, to.end, to.value = d.members[i].key, d.members[i].end, d.members[i].value
	d.members[i] = to
	for k := range d.members[:i] { // earlier ones of that name would contradict it
		if m := &d.members[k]; m.name == to.name {
			m.changed, m.text, m.items = true, "", nil
		}
	}
}

// IsArrayOf reports whether a value is an array of exactly these values.
func IsArrayOf(array gjson.Result, values []string) bool {
	if !array.IsArray() {
		return false
	}
	n, same := 0, true
	array.ForEach(func(_, value gjson.Result) bool {
		same = n < len(values) && values[n] == value.Raw
		n++
		return same
	})
	return same && n == len(values)
}

// Bytes returns the document with the new values.
func (d *Document) Bytes() []byte {
	size := len(d.doc)
	for i := range d.members {
		if m := &d.members[i]; m.changed {
			size += len(m.name) + 4 + len(m.text) + arraySize(m.items) - (m.end - m.key)
		}
	}
	open := strings.IndexByte(d.doc, '{') + 1
	b := append(make([]byte, 0, size), d.doc[:open]...)
	at, written, skipped := open, false, false // at is where the last member ended
	for i := range d.members {
		m := &d.members[i]
		gone := m.changed && m.text == "" && m.items == nil
		switch {
		case gone:
		case !m.value.Exists(): // a new one
			if written {
				b = append(b, ',')
			}
			b = append(append(b, Quote(m.name)...), ':')
		case written || !skipped:
			b = append(b, d.doc[at:m.value.Index]...)
		default: // all before it were removed
			b = append(b, d.doc[m.key:m.value.Index]...)
		}
		switch {
		case gone:
			skipped = true
		case m.items != nil:
			for k, item := range m.items {
				b = append(append(b, "[,"[min(k, 1)]), item...)
			}
			b = append(b, ']')
		case m.changed:
			b = append(b, m.text...)
		default:
			b = append(b, m.value.Raw...)
		}
		written = written || !gone
		if m.value.Exists() {
			at = m.end
		}
	}
	return append(b, d.doc[at:]...)
}
