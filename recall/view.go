package recall

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
)

// decodeEscapes returns the view of a text, which is searched and shown instead of it: in a
// line that is JSON, or a call with JSON arguments, escapes are decoded, so that code in an
// argument has its own lines and words. Nothing else changes.
func decodeEscapes(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	eachDecoded(text, func(s string, _ int) bool { b.WriteString(s); return true })
	return b.String()
}

// originalOffset returns the place in a text of byte `at` of its view.
func originalOffset(text string, at int) int {
	if strings.IndexByte(text, '\\') < 0 {
		return at
	}
	seen, place := 0, len(text)
	eachDecoded(text, func(s string, from int) bool {
		if seen+len(s) > at {
			place = from
			if len(s) > 1 && text[from] != '\\' {
				place += at - seen
			}
			return false
		}
		seen += len(s)
		return true
	})
	return place
}

// eachDecoded yields a view in pieces, with their places in the text, until yield returns
// false.
func eachDecoded(text string, yield func(s string, from int) bool) {
	whole := isEscapedJSON(text)
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 && !whole {
			end = at + n + 1
		}
		decoding := whole || strings.IndexByte(text[at:end], '\\') >= 0 && isEscapedJSON(text[at:end])
		for at < end {
			s, size := text[at:end], end-at
			if n := strings.IndexByte(s, '\\'); decoding && n > 0 {
				s, size = s[:n], n
			} else if decoding && n == 0 {
				s, size = unescape(s)
			}
			if !yield(s, at) {
				return
			}
			at += size
		}
	}
}

// isEscapedJSON reports whether a text is JSON, or a name and JSON.
func isEscapedJSON(text string) bool {
	at := strings.IndexAny(text, "{[")
	return at >= 0 && at <= maxToken && strings.IndexByte(text[:at], '\n') < 0 && rawjson.Valid(text[at:])
}

// unescape decodes the escape at the beginning of a text, and returns its length.
func unescape(text string) (string, int) {
	if len(text) < 2 {
		return text, len(text)
	}
	if n := strings.IndexByte(`ntr"\/`, text[1]); n >= 0 {
		return "\n\t\r\"\\/"[n : n+1], 2
	}
	r, ok := hex4(text)
	if ok && !utf16.IsSurrogate(r) {
		return string(r), 6
	}
	if ok {
		low, _ := hex4(text[6:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return string(pair), 12
		}
	}
	return text[:1], 1
}

// hex4 reads an escape of four hexadecimal figures.
func hex4(text string) (rune, bool) {
	if len(text) < 6 || text[:2] != `\u` {
		return 0, false
	}
	r, err := strconv.ParseUint(text[2:6], 16, 16)
	return rune(r), err == nil
}
