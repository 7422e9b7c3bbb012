package summary

import (
	"strings"
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
//     after its first character, or before the parenthesis; so has what only looks
//     like one (see looks), or has characters in it that nobody sees;
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
			r, _ := utf8.DecodeRuneInString(s[i:])
			first := looks(r)
			if forgesLine(first, s[i:]) {
				flush(i)
				b.WriteByte('\\')
				start = i
			}
			lineStart = first == ' ' || first == '\t' || unseen(r)
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
			if forgesMark(c, s[i+1:]) {
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
			switch bracket := looks(r); {
			case (bracket == '[' || bracket == '<') && forgesMark(bracket, s[i+n:]):
				flush(i + n)
				b.WriteByte('\\')
				start = i + n
			case bracket == '(' && endsFold(s[:i], "read_artifact"):
				flush(i)
				b.WriteByte('\\')
				start = i
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
	'[': {
		"summary v", "context summary", "externalized content", "rehydrated", "recalled content", "compact summary", "conv.range.summary", "context truncated",
		"summarized above", "signed by palimpsest", "inst]", "/inst]", "system]", "end of summary",
	},
	'<': {
		"|", "<sys>>", "</sys>>", "system", "/system", "user>", "/user>", "human>", "/human>", "assistant>", "/assistant>",
		"developer>", "/developer>", "tool_result", "/tool_result", "tool_use", "/tool_use", "function_call", "/function_call",
		"summary>", "/summary>", "instructions>", "/instructions>", "im_start", "im_end",
	},
}

// speakers are the beginnings of a line that chat templates and people use to
// say who speaks, in lower case.
var speakers = []string{"system:", "human:", "assistant:", "user:", "developer:", "tool:", "###", "## ", "# system", "the user's words"}

// forgesMark reports whether what follows an opening bracket makes it a marker.
func forgesMark(bracket byte, rest string) bool {
	rest = trimSeen(rest)
	for _, m := range marks[bracket] {
		if hasPrefixFold(rest, m) {
			return true
		}
	}
	return false
}

// forgesLine reports whether a line begins as somebody's words do; first is what its
// first character looks like.
func forgesLine(first byte, s string) bool {
	for _, m := range speakers {
		if m[0] == first && hasPrefixFold(s, m) {
			return true
		}
	}
	return false
}
