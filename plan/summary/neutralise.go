package summary

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/glyph"
)

// neutralise writes item text so that it cannot forge a boundary of the prompt.
// What it does, and all that it does:
//
//   - lines end in newline, a line feed and at least two spaces, so no later line of
//     an item begins where headings and items of ours begin;
//   - a line that begins like a heading of ours ("## ") or like a speaker
//     ("System:", "Human:", …) gets a backslash in front;
//   - a look-alike of a marker of ours ("[Summary v", "[Context Summary",
//     "[Externalized Content", "[Rehydrated", "read_artifact(") or of a chat
//     template ("<system", "</user", "<|", "[INST", "<<SYS") gets a backslash
//     after its first character, or before the parenthesis; so has what only looks
//     like one (see glyph.Looks), or has characters in it that nobody sees;
//   - line separators of every kind become newlines; other control characters,
//     bidirectional marks, zero-width spaces and broken UTF-8 become U+FFFD.
//     They are not taken out, because that could join the halves of a marker.
//
// The escape is stable: neutral text stays as it is, so chained summaries do
// not collect backslashes.
func neutralise(b *strings.Builder, s, newline string) {
	start := 0 // of the text not yet written
	replace := func(from, to int, by string) {
		b.WriteString(s[start:from])
		b.WriteString(by)
		start = to
	}
	lineStart := true
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\n':
			replace(i, i+1, newline)
			lineStart = true
			i++
			continue
		case inert[c] && !(lineStart && begins[c]):
			lineStart = lineStart && (c == ' ' || c == '\t')
			for i++; i < len(s) && !lineStart && inert[s[i]]; i++ {
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\r' && strings.HasPrefix(s[i+1:], "\n") {
			n++
		}
		end := i + n
		first := glyph.Looks(r)
		if lineStart && r != '\r' {
			if forgesLine(first, s[i:]) {
				replace(i, i, `\`)
			}
			lineStart = first == ' ' || first == '\t' || glyph.Unseen(r)
		}
		switch {
		case strings.ContainsRune("\r\v\f\u0085\u2028\u2029", r):
			replace(i, end, newline)
			lineStart = true
		case (first == '[' || first == '<') && forgesMark(first, s[end:]):
			replace(end, end, `\`)
		case first == '(' && endsFold(s[:i], "read_artifact"):
			replace(i, i, `\`)
		case r == utf8.RuneError && n == 1, glyph.Hidden(r) && r != '\t':
			replace(i, end, string(utf8.RuneError))
		}
		i = end
	}
	b.WriteString(s[start:])
}

// inert are the bytes that have no meaning inside a line: nearly all of a text.
var inert = func() (t [256]bool) {
	for c := byte(0x20); c < 0x7f; c++ {
		t[c] = c != '[' && c != '<' && c != '('
	}
	t['\t'] = true
	return t
}()

// marks must not appear in an item, in lower case and without their first character.
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

// speakers are the beginnings of a line that chat templates and people use to say who
// speaks, in lower case.
var speakers = []string{"system:", "human:", "assistant:", "user:", "developer:", "tool:", "###", "## ", "# system", "the user's words"}

// begins are the bytes that a line of a speaker may begin with.
var begins = func() (t [256]bool) {
	for c := range byte(0x80) {
		t[c] = slices.ContainsFunc(speakers, func(m string) bool { return m[0] == glyph.Looks(rune(c)) })
	}
	return t
}()

// forgesMark reports whether what follows an opening bracket makes it a marker.
func forgesMark(bracket byte, rest string) bool {
	rest = trimSeen(rest)
	return slices.ContainsFunc(marks[bracket], func(m string) bool { return hasPrefixFold(rest, m) })
}

// forgesLine reports whether a line begins like a speaker's; first is what its first
// character looks like.
func forgesLine(first byte, s string) bool {
	return slices.ContainsFunc(speakers, func(m string) bool { return m[0] == first && hasPrefixFold(s, m) })
}

// hasPrefixFold reports whether s begins with what looks like the word, which is in lower
// case.
func hasPrefixFold(s, lower string) bool {
	for i := 0; i < len(lower); {
		r, n := utf8.DecodeRuneInString(s)
		if n == 0 {
			return false
		}
		s = s[n:]
		if glyph.Unseen(r) {
			continue
		}
		if glyph.Looks(r) != lower[i] {
			return false
		}
		i++
	}
	return true
}

// endsFold reports whether s ends in what looks like the word, ignoring spaces after it.
func endsFold(s, lower string) bool {
	for i := len(lower) - 1; i >= 0; {
		r, n := utf8.DecodeLastRuneInString(s)
		if n == 0 {
			return false
		}
		s = s[:len(s)-n]
		c := glyph.Looks(r)
		if glyph.Unseen(r) || i == len(lower)-1 && (c == ' ' || c == '\t') {
			continue
		}
		if c != lower[i] {
			return false
		}
		i--
	}
	return true
}

// trimSeen removes white space and invisible characters from the beginning of a text.
func trimSeen(s string) string {
	return strings.TrimLeftFunc(s, func(r rune) bool { c := glyph.Looks(r); return glyph.Unseen(r) || c == ' ' || c == '\t' })
}
