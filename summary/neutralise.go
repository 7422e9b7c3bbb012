package summary

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// neutralise writes item text so that it cannot forge a boundary of the prompt.
// What it does, and all that it does:
//
//   - every line after the first is indented by two spaces, so no line of an
//     item begins where headings and items of ours begin;
//   - a line that begins like a heading of ours ("## ") or like a speaker
//     ("System:", "Human:", …) gets a backslash in front;
//   - a look-alike of a marker of ours ("[Summary v", "[Context Summary",
//     "[Externalized Content", "[Rehydrated", "read_artifact(") or of a chat
//     template ("<system", "</user", "<|", "[INST", "<<SYS") gets a backslash
//     after its first character, or before the parenthesis;
//   - line separators of every kind become newlines; other control characters,
//     bidirectional marks, zero-width spaces and broken UTF-8 become U+FFFD.
//     They are not taken out, because that could join the halves of a marker.
//
// The escape is stable: neutral text stays as it is, so chained summaries do
// not collect backslashes.
func neutralise(b *strings.Builder, s string) {
	start := 0 // of the text not yet written
	lineStart := true
	flush := func(to int) { b.WriteString(s[start:to]) }
	for i := 0; i < len(s); {
		c := s[i]
		if !lineStart && inert[c] {
			i++
			continue
		}
		if lineStart && c != '\n' && c != '\r' {
			if forgesLine(s[i:]) {
				flush(i)
				b.WriteByte('\\')
				start = i
			}
			lineStart = c == ' ' || c == '\t'
		}
		switch {
		case c == '\n' || c == '\r' || c == '\v' || c == '\f':
			flush(i)
			if c == '\r' && i+1 < len(s) && s[i+1] == '\n' {
				i++
			}
			b.WriteString("\n  ")
			i++
			start, lineStart = i, true
		case c == '[' || c == '<':
			if forgesMark(s[i:]) {
				flush(i + 1)
				b.WriteByte('\\')
				start = i + 1
			}
			i++
		case c == '(':
			if endsFold(s[:i], "read_artifact") {
				flush(i)
				b.WriteByte('\\')
				start = i
			}
			i++
		case c < 0x20 && c != '\t' || c == 0x7f:
			flush(i)
			b.WriteRune(utf8.RuneError)
			i++
			start = i
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == '\u0085' || r == '\u2028' || r == '\u2029':
				flush(i)
				b.WriteString("\n  ")
				start, lineStart = i+n, true
			case r == utf8.RuneError && n <= 1 || hidden(r):
				flush(i)
				b.WriteRune(utf8.RuneError)
				start = i + n
			}
			i += n
		}
	}
	flush(len(s))
}

// inert are the bytes that mean nothing but inside a line: nearly all of a text.
var inert = func() (t [256]bool) {
	for c := byte(0x20); c < 0x7f; c++ {
		t[c] = c != '[' && c != '<' && c != '('
	}
	t['\t'] = true
	return t
}()

// marks are what must not appear in an item as it stands, in lower case and
// without their first character.
var marks = map[byte][]string{
	'[': {"summary v", "context summary", "externalized content", "rehydrated", "inst]", "/inst]", "system]", "end of summary"},
	'<': {
		"|", "<sys>>", "</sys>>", "system", "/system", "user>", "/user>", "human>", "/human>", "assistant>", "/assistant>",
		"developer>", "/developer>", "tool_result", "/tool_result", "tool_use", "/tool_use", "function_call", "/function_call",
		"summary>", "/summary>", "instructions>", "/instructions>", "im_start", "im_end",
	},
}

// speakers are the beginnings of a line that chat templates and people use to
// say who speaks, in lower case.
var speakers = []string{"system:", "human:", "assistant:", "user:", "developer:", "tool:", "###", "## ", "# system"}

// hidden reports characters that a reader does not see but a tokenizer does.
func hidden(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u200b' || r == '\u2060' || r == '\ufeff'
}

func forgesMark(s string) bool {
	rest := strings.TrimLeft(s[1:], " \t")
	for _, m := range marks[s[0]] {
		if hasPrefixFold(rest, m) {
			return true
		}
	}
	return false
}

func forgesLine(s string) bool {
	first := s[0]
	if 'A' <= first && first <= 'Z' {
		first += 'a' - 'A'
	}
	for _, m := range speakers {
		if m[0] == first && hasPrefixFold(s, m) {
			return true
		}
	}
	return false
}

func hasPrefixFold(s, lower string) bool {
	if len(s) < len(lower) {
		return false
	}
	for i := range len(lower) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// endsFold reports whether s ends in the word, spaces after it allowed.
func endsFold(s, lower string) bool {
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return len(s) >= len(lower) && hasPrefixFold(s[len(s)-len(lower):], lower)
}
