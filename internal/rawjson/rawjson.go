// Package rawjson works on JSON as text, so that bytes stay as they are. It checks
// documents from outside, replaces members in them, and writes strings, objects and
// arrays.
package rawjson

import (
	"slices"
	"unicode/utf8"
)

// Quote writes s as a JSON string and escapes only what JSON demands: no HTML characters
// and no scripts. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) string { return string(appendQuoted(make([]byte, 0, quotedSize(s)), s)) }

// quotedSize guesses the length of a text as a JSON string.
func quotedSize(s string) int { return len(s) + len(s)/16 + 2 }

func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := len(b)
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
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			if left := len(s) - i + 5; cap(b)-len(b) < left {
				// The rest is taken to be like what was read: a text of control characters is six
				// times as long once quoted, and would be copied again and again.
				b = slices.Grow(b, (len(b)-start)*left/(i+1)+left)
			}
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
