package rawjson

import (
	"iter"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Object writes a JSON object member by member. The zero value is empty.
type Object struct{ b []byte }

// NewTypedObject begins an object with a member "type".
func NewTypedObject(kind string) *Object { return new(Object).Str("type", kind) }

// Reset empties the object, to reuse its memory for another one.
func (o *Object) Reset() *Object {
	o.b = o.b[:0]
	return o
}

// Raw adds a member whose value is JSON; "" adds nothing.
func (o *Object) Raw(name, value string) *Object {
	if value != "" {
		o.key(name, len(value))
		o.b = append(o.b, value...)
	}
	return o
}

// Str adds a member whose value is a string.
func (o *Object) Str(name, value string) *Object {
	o.key(name, quotedSize(value))
	o.b = appendQuoted(o.b, value)
	return o
}

// NonEmpty is Str for a text that may be empty; "" adds nothing.
func (o *Object) NonEmpty(name, value string) *Object {
	if value == "" {
		return o
	}
	return o.Str(name, value)
}

// key begins a member, with room for a value of that size and the end.
func (o *Object) key(name string, size int) {
	c := byte(',')
	if len(o.b) == 0 {
		c = '{'
	}
	o.b = slices.Grow(o.b, quotedSize(name)+size+3)
	o.b = append(appendQuoted(append(o.b, c), name), ':')
}

// String ends the object and returns it. After that only Reset may be called.
func (o *Object) String() string {
	if len(o.b) == 0 {
		return "{}"
	}
	o.b = append(o.b, '}')
	return string(o.b)
}

// Array writes values as an array.
func Array(values []string) string {
	var b strings.Builder
	b.Grow(arraySize(values))
	b.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(v)
	}
	b.WriteByte(']')
	return b.String()
}

// ArrayOf writes the values of a list's items as an array.
func ArrayOf[T any](list []T, value func(T) string) string {
	values := make([]string, len(list))
	for i, item := range list {
		values[i] = value(item)
	}
	return Array(values)
}

func arraySize(values []string) int {
	size := 2 + len(values)
	for _, v := range values {
		size += len(v)
	}
	return size
}

// IsObject reports whether a text is one JSON object.
func IsObject(doc string) bool {
	return strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") && Valid(doc)
}

// AsObject turns a text, such as the arguments of a call, into a JSON object. An object
// stays one, without white space around it, and blank text becomes {}. Anything else
// becomes an object whose member "input" holds it, as JSON if it is JSON.
func AsObject(text string) string {
	bare := strings.TrimSpace(text)
	switch {
	case bare == "":
		return "{}"
	case IsObject(bare):
		return bare
	case Valid(bare):
		return new(Object).Raw("input", bare).String()
	}
	return new(Object).Str("input", text).String()
}

// Fields are the members of an object.
type Fields []Field

// Field is a member of an object.
type Field struct {
	Name  string
	Value gjson.Result
}

// FieldsOf appends the members of an object to into, which saves an allocation if it has
// room.
func FieldsOf(object gjson.Result, into Fields) Fields {
	if all, ok := appendFields(object, into); ok { // nearly always
		return all
	}
	object.ForEach(func(key, value gjson.Result) bool {
		into = append(into, Field{key.Str, value})
		return true
	})
	return into
}

// appendFields is FieldsOf for an object that is valid JSON. It passes over values several bytes at a time, since most
// of a session is in strings. It is false, without members, for anything else.
func appendFields(object gjson.Result, into Fields) (Fields, bool) {
	doc := object.Raw
	i := skipSpace(doc, 0)
	if object.Type != gjson.JSON || i == len(doc) || doc[i] != '{' {
		return nil, false
	}
	i = skipSpace(doc, i+1)
	for i < len(doc) && doc[i] == '"' {
		end, ok := skipString(doc, i+1)
		if !ok {
			return nil, false
		}
		name := stringOf(doc[i:end]).Str
		if i = skipSpace(doc, end); i == len(doc) || doc[i] != ':' {
			return nil, false
		}
		i = skipSpace(doc, i+1)
		if end, ok = skipValue(doc, i); !ok {
			return nil, false
		}
		value := gjson.Result{Type: gjson.JSON, Raw: doc[i:end]}
		if doc[i] == '"' {
			value = stringOf(value.Raw)
		} else if doc[i] != '{' && doc[i] != '[' {
			value = gjson.Parse(value.Raw)
		}
		value.Index = i + object.Index
		into = append(into, Field{name, value})
		if i = skipSpace(doc, end); i < len(doc) && doc[i] == ',' {
			i = skipSpace(doc, i+1)
		}
	}
	return into, i < len(doc) && doc[i] == '}'
}

// unescaped are the bytes behind a backslash, and what they stand for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// stringOf is a string of valid JSON. What stands between escapes is taken as a whole.
func stringOf(raw string) gjson.Result {
	rest := raw[1 : len(raw)-1]
	at := strings.IndexByte(rest, '\\')
	if at < 0 {
		return gjson.Result{Type: gjson.String, Raw: raw, Str: rest}
	}
	b := make([]byte, 0, len(rest))
	for ; at >= 0; at = strings.IndexByte(rest, '\\') {
		c := unescaped[rest[at+1]]
		if c == 0 { // of a code
			return gjson.Parse(raw)
		}
		b = append(append(b, rest[:at]...), c)
		rest = rest[at+2:]
	}
	b = append(b, rest...)
	return gjson.Result{Type: gjson.String, Raw: raw, Str: unsafe.String(&b[0], len(b))}
}

// skipValue is the place behind a value of valid JSON.
func skipValue(doc string, i int) (end int, ok bool) {
	for depth := 0; i < len(doc); {
		switch doc[i] {
		case '"':
			if i, ok = skipString(doc, i+1); !ok {
				return i, false
			}
			i--
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number or a word
				begun := i
				for i < len(doc) && doc[i] > ' ' && doc[i] != ',' && doc[i] != '}' && doc[i] != ']' {
					i++
				}
				return i, i > begun
			}
		}
		if i++; depth <= 0 {
			return i, depth == 0
		}
	}
	return i, false
}

// Get returns the value of a member; of two with one name, the last.
func (f Fields) Get(name string) gjson.Result {
	for i := len(f) - 1; i >= 0; i-- {
		if f[i].Name == name {
			return f[i].Value
		}
	}
	return gjson.Result{}
}

// Str returns the value of a string member; "" for anything else.
func (f Fields) Str(name string) string { return f.Get(name).Str }

// Items are the elements of an array. Anything else has none.
func Items(array gjson.Result) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		if array.IsArray() {
			array.ForEach(func(_, item gjson.Result) bool { return yield(item) })
		}
	}
}

// RawItems returns the items of an array as they stand in the document: those for which keep
// returns true; nil keeps all.
func RawItems(array gjson.Result, keep func(gjson.Result) bool) (raw []string) {
	for v := range Items(array) {
		if keep == nil || keep(v) {
			raw = append(raw, v.Raw)
		}
	}
	return raw
}

// Members are the members of an object, by name. Anything else has none.
func Members(object gjson.Result) iter.Seq2[string, gjson.Result] {
	return func(yield func(string, gjson.Result) bool) {
		if object.IsObject() {
			object.ForEach(func(key, value gjson.Result) bool { return yield(key.Str, value) })
		}
	}
}

// Objects returns the items of an array of objects, in the memory of room if they fit. bad
// is the position of the first item that is no object, or -1.
func Objects(array gjson.Result, room []gjson.Result) (items []gjson.Result, bad int) {
	items = room[:0]
	for item := range Items(array) {
		if !item.IsObject() {
			return items, len(items)
		}
		items = append(items, item)
	}
	return items, -1
}

// Count reads a number of tokens: a whole number above 0, or 0 for anything else.
func Count(v gjson.Result) int {
	if v.Type != gjson.Number || v.Num < 1 || v.Num >= 1<<53 {
		return 0
	}
	return int(v.Num)
}

// FirstText returns the first of the members, by their keys, that is there and not empty, as
// text; "" if none is.
func FirstText(object gjson.Result, keys ...string) string {
	for _, k := range keys {
		if v := object.Get(k); v.Exists() && v.Type != gjson.Null && v.String() != "" {
			return v.String()
		}
	}
	return ""
}
