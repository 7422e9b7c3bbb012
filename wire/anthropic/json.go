package anthropic

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// maxDepth bounds how deep a body may nest. Real requests stay below 30; the
// bound keeps a hostile body from exhausting the stack of a recursive reader.
const maxDepth = 1000

// checkJSON reports what is wrong with a document that should be one JSON
// value. The depth is checked first, by a loop, because the reader behind
// gjson.Valid is recursive.
func checkJSON(doc string) error {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			for i++; i < len(doc) && doc[i] != '"'; i++ {
				if doc[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("the JSON nests deeper than %d levels at byte %d", maxDepth, i)
			}
		case '}', ']':
			depth--
		}
	}
	if !gjson.Valid(doc) {
		return errors.New("the body is not valid JSON")
	}
	return nil
}

// validObject reports whether a document is one JSON object.
func validObject(doc string) bool {
	return strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") && checkJSON(doc) == nil
}

// appendString writes a JSON string. Only what must be escaped is: no HTML
// escapes, all scripts as they are. Bytes that are no UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
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
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// object writes a JSON object member by member; members with empty values are
// left out by the callers.
type object struct{ b []byte }

func (o *object) key(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(appendString(o.b, name), ':')
}

func (o *object) str(name, value string) *object {
	o.key(name)
	o.b = appendString(o.b, value)
	return o
}

func (o *object) raw(name, value string) *object {
	o.key(name)
	o.b = append(o.b, value...)
	return o
}

func (o *object) String() string {
	if len(o.b) == 0 {
		return "{}"
	}
	return string(o.b) + "}"
}

func array(items []string) string { return "[" + strings.Join(items, ",") + "]" }

// blank reports whether the API takes a text for empty.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// str returns the value of a string member, and whether it is one.
func str(v gjson.Result) (string, bool) { return v.Str, v.Type == gjson.String }
