package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// literal reads the object of JavaScript that data begins with, as a bundler writes it
// (names without quotes, !0 and !1, numbers such as .5 and 1e6), and returns it as JSON.
func literal(data []byte) (string, error) {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '"' || c == '\'' || c == '`':
			end := i + 1
			for end < len(data) && data[end] != c {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(data) {
				return "", fmt.Errorf("a text has no end")
			}
			text := string(data[i+1 : end])
			if c != '"' {
				text = strings.ReplaceAll(strings.ReplaceAll(text, `\'`, `'`), `"`, `\"`)
			}
			if quoted := `"` + text + `"`; json.Valid([]byte(quoted)) {
				b.WriteString(quoted)
			} else {
				b.WriteString(strconv.Quote(strings.ToValidUTF8(text, "?"))) // a description; no figure
			}
			i = end + 1
		case c == '!' && i+1 < len(data):
			b.WriteString(map[bool]string{true: "true", false: "false"}[data[i+1] == '0'])
			i += 2
		case strings.IndexByte("{}[],:", c) >= 0:
			b.WriteByte(c)
			i++
			if c == '{' || c == '[' {
				depth++
			} else if c == '}' || c == ']' {
				depth--
			}
			if depth == 0 {
				if !json.Valid([]byte(b.String())) {
					return "", fmt.Errorf("it is no object of plain values")
				}
				return b.String(), nil
			}
		default:
			end := i
			for end < len(data) && (unicode.IsLetter(rune(data[end])) || unicode.IsDigit(rune(data[end])) || strings.IndexByte("_$.+-", data[end]) >= 0) {
				end++
			}
			if end == i {
				return "", fmt.Errorf("byte %d is %q", i, c)
			}
			word := string(data[i:end])
			if n, err := strconv.ParseFloat(word, 64); err == nil && (end >= len(data) || data[end] != ':') {
				word = strconv.FormatFloat(n, 'f', -1, 64)
			} else if word != "true" && word != "false" && word != "null" {
				word = strconv.Quote(word)
			}
			b.WriteString(word)
			i = end
		}
	}
	return "", fmt.Errorf("the object has no end")
}
