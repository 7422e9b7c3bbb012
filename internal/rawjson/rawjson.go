// Package rawjson works on JSON as text, where bytes have to stay as they are:
// it checks documents that come from outside, and writes strings.
package rawjson

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxDepth bounds how deep a document may nest. Real requests stay below 30
// levels; the bound keeps a hostile one from exhausting the stack of a
// recursive reader.
const MaxDepth = 1000

var (
	// ErrDepth is wrapped by errors about a document that nests too deep.
	ErrDepth = errors.New("the JSON nests too deep")
	// ErrSyntax is returned for anything that is not one JSON document.
	ErrSyntax = errors.New("not valid JSON")
)

// Check reports what is wrong with a text that should be one JSON document. The
// depth is checked first, by a loop: the reader behind gjson.Valid is recursive.
func Check(doc string) error {
	if at, deep := tooDeep(doc); deep {
		return fmt.Errorf("%w: over %d levels at byte %d", ErrDepth, MaxDepth, at)
	}
	if !gjson.Valid(doc) {
		return ErrSyntax
	}
	return nil
}

// Valid reports whether a text is one JSON document that nests at most MaxDepth
// deep.
func Valid(doc string) bool { return Check(doc) == nil }

func tooDeep(doc string) (at int, deep bool) {
	depth := 0
	for i := 0; i < len(doc); i++ {
		switch doc[i] {
		case '{', '[':
			if depth++; depth > MaxDepth {
				return i, true
			}
		case '}', ']':
			depth--
		case '"':
			i = stringEnd(doc, i)
		}
	}
	return 0, false
}

// stringEnd returns the position of the quote that closes the string opened at
// i, or the end of doc.
func stringEnd(doc string, i int) int {
	for i++; i < len(doc); i++ {
		n := strings.IndexByte(doc[i:], '"')
		if n < 0 {
			return len(doc)
		}
		i += n
		slashes := 0
		for doc[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return len(doc)
}

// Quote writes s as a JSON string; see AppendString.
func Quote(s string) string { return string(AppendString(make([]byte, 0, len(s)+2), s)) }

// AppendString writes s as a JSON string with nothing escaped that need not be:
// no HTML escapes, all scripts as they are. A byte that is no UTF-8 becomes
// U+FFFD, as JSON cannot hold it.
func AppendString(b []byte, s string) []byte {
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
