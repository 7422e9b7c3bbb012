// Package rawjson works on JSON as text, so that bytes stay as they are. It checks
// documents from outside, replaces members in them, and writes strings, objects and
// arrays.
package rawjson

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Quote writes s as a JSON string and escapes only what JSON demands: no HTML characters
// and no scripts. Invalid UTF-8 becomes U+FFFD.
func Quote(s string) string { return string(appendQuoted(make([]byte, 0, quotedSize(s)), s)) }

// IsQuoted reports whether a valid JSON string is written as Quote writes it.
func IsQuoted(raw string) bool {
	for {
		at := strings.IndexByte(raw, '\\')
		if at < 0 {
			return true
		}
		raw = raw[at+1:]
		switch {
		case strings.IndexByte(`"\\bfnrt`, raw[0]) >= 0:
			raw = raw[1:]
		case raw[0] == 'u' && isControl(raw[1:5]):
			raw = raw[5:]
		default:
			return false
		}
	}
}

// isControl reports whether four digits are those of a control character, in lower case, that has no shorter form.
func isControl(digits string) bool {
	code, err := strconv.ParseUint(digits, 16, 16)
	return err == nil && code < ' ' && !strings.ContainsRune("\b\f\n\r\t", rune(code)) && strings.ToLower(digits) == digits
}

// quotedSize guesses the length of a text as a JSON string.
func quotedSize(s string) int { return len(s) + len(s)/16 + 2 }

func appendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := len(b)
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) && isPlain(s[i:i+8]) {
			i += 8
			continue
		}
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

// isPlain reports whether eight bytes stand in a JSON string as they are. It is false for some others as well.
func isPlain(s string) bool {
	const each, top = 0x0101010101010101, 0x8080808080808080
	_ = s[7]
	w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	return (w|(w-' '*each)|((w^'"'*each)-each)|((w^'\\'*each)-each))&top == 0
}

// An error shows so many steps of the path to JSON that nests too deep, each in so many
// bytes.
const (
	shownSteps = 6
	shownName  = 24
)

// deepPath says where a document nests too deep, as ", in messages[2].content…"; "" if that
// cannot be found.
func deepPath(doc string) string {
	path, at, found := "", gjson.Parse(doc), true
	for n := 0; found && n < shownSteps; n++ {
		object, i := at.IsObject(), 0
		found = false
		at.ForEach(func(key, value gjson.Result) bool {
			if found = value.Type == gjson.JSON && TooDeep(value.Raw, MaxDepth-shownSteps); !found {
				i++
				return true
			}
			if at = value; object {
				path += "." + shortName(key.Str)
			} else {
				path += "[" + strconv.Itoa(i) + "]"
			}
			return false
		})
	}
	if path == "" {
		return ""
	}
	return ", in " + strings.TrimPrefix(path, ".") + "…"
}

// shortName returns the name of a member if it is a plain word; others may be content.
func shortName(name string) string {
	if len(name) > shownName || strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		return "…"
	}
	return name
}
