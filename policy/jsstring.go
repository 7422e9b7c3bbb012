package policy

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Seed B is written in JavaScript: its lengths are those of UTF-16, and values
// stand in its texts as JSON.stringify writes them.

// units counts the UTF-16 code units of s.
func units(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		n += unitsOf(r)
	}
	return n
}

// unitsOf is 2 for the characters that UTF-16 writes as a pair.
func unitsOf(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}

// headUnits returns the first n code units of s and whether that is all of it. A
// pair is never torn: where the cut falls inside one it is left out.
func headUnits(s string, n int) (head string, whole bool) {
	if len(s) <= n {
		return s, true
	}
	for i, r := range s {
		if n -= unitsOf(r); n < 0 {
			return s[:i], false
		}
	}
	return s, true
}

// escapes are the characters that JSON.stringify writes with a letter.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// quoted writes s as JSON.stringify does.
func quoted(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.Grow(len(s) + 2)
	b.WriteByte('"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			b.WriteRune(r) // U+FFFD for a byte that is no UTF-8
			i += size
			continue
		}
		i++
		switch letter, short := escapes[c]; {
		case c >= ' ' && c != '"' && c != '\\':
			b.WriteByte(c)
		case short:
			b.WriteByte('\\')
			b.WriteByte(letter)
		default:
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quotedUnits is units(quoted(s)), without writing it.
func quotedUnits(s string) int {
	n := units(s) + len(`""`)
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		if _, short := escapes[c]; short {
			n++
		} else {
			n += len(`u0000`)
		}
	}
	return n
}

// stringify writes a JSON document as JSON.stringify writes its value: without
// white space between, and strings without needless escapes. Members keep their
// order and numbers their digits. What is no JSON, the arguments of a custom
// tool, is a string.
func stringify(doc string) string {
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(doc)) != nil {
		return quoted(doc)
	}
	text := compact.String()
	if !strings.Contains(text, `\u`) && !strings.Contains(text, `\/`) {
		return text
	}
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '"')
		if open < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := open + 1
		for text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		b.WriteString(text[:open])
		var s string
		if json.Unmarshal([]byte(text[open:end+1]), &s) == nil { // a string of a valid document always is one
			b.WriteString(quoted(s))
		}
		text = text[end+1:]
	}
}
