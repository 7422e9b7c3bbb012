package gemini

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth bounds the nesting of a body. Real requests stay below 30; Google's
// own JSON parser for protocol messages stops at 100.
const maxDepth = 1000

// shallow reports whether nothing in the text nests deeper than maxDepth. It
// comes before every recursive parser, which could run out of stack.
func shallow(doc string) bool {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			if depth++; depth > maxDepth {
				return false
			}
		case ']', '}':
			depth--
		}
	}
	return true
}

// parse reads a JSON document; false when it is none or nests too deep.
func parse(doc string) (gjson.Result, bool) {
	if !shallow(doc) || !gjson.Valid(doc) {
		return gjson.Result{}, false
	}
	return gjson.Parse(strings.TrimSpace(doc)), true
}

// isObject reports whether the text is one JSON object.
func isObject(doc string) bool {
	doc = strings.TrimSpace(doc)
	return strings.HasPrefix(doc, "{") && shallow(doc) && gjson.Valid(doc)
}

// camel returns a field name in the spelling of the REST reference. Google's
// JSON parser takes the names of the protocol definition (snake case) as well.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	b := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '_' && i+1 < len(name) {
			i++
			if c = name[i]; 'a' <= c && c <= 'z' {
				c -= 'a' - 'A'
			}
		}
		b = append(b, c)
	}
	return string(b)
}

// field returns the member of an object by its camel-case name, in either
// spelling. Where a name stands twice the last one counts, as for most parsers.
func field(object gjson.Result, name string) (found gjson.Result) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, value gjson.Result) bool {
		if key.Str == name || camel(key.Str) == name {
			found = value
		}
		return true
	})
	return found
}

// str returns the text of a JSON string, and "" for anything else.
func str(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// appendString writes a JSON string, with nothing escaped that need not be.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
