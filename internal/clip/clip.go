// Package clip shortens text. It never cuts inside what a reader sees as one character, and says how much
// is missing. It also wraps text, and writes numbers for people.
package clip

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// window is how far around a cut, in bytes, grapheme boundaries are searched. Longer clusters are cut
// between runes.
const window = 128

// Boundary returns the last position at or before i (in bytes) where s can be
// cut between two grapheme clusters.
func Boundary(s string, i int) int {
	if i <= 0 {
		return 0
	}
	if i >= len(s) {
		return len(s)
	}
	if a, b := s[i-1], s[i]; a < utf8.RuneSelf && b < utf8.RuneSelf && !(a == '\r' && b == '\n') {
		return i // between any other two ASCII characters there is a boundary
	}
	start := runeStart(s, max(0, i-window))
	end := runeStart(s, min(len(s), i+window))
	at := start
	clusters := graphemes.FromString(s[start:end])
	for clusters.Next() {
		if next := at + len(clusters.Value()); next <= i {
			at = next
			continue
		}
		break
	}
	if at == start && start > 0 {
		return runeStart(s, i)
	}
	return at
}

// runeStart returns the last position at or before i where a rune begins.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// Sentences returns the whole lines and sentences within the first n bytes of s, without white space at
// the end. It returns all of s if that is not longer.
func Sentences(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := min(n, len(s)) - 1; i >= 0; i-- {
		next := s[i+1] // exists, since n < len(s)
		switch c := s[i]; {
		case c == '\n', (c == '.' || c == '!' || c == '?') && (next == ' ' || next == '\n'):
			return strings.TrimRight(s[:i+1], " \t\n")
		case c == 0x82 && i > 1 && s[i-2:i+1] == "。", c == 0x81 && i > 1 && s[i-2:i+1] == "！", c == 0x9f && i > 1 && s[i-2:i+1] == "？":
			return s[:i+1]
		}
	}
	return ""
}

// Short returns s, or about its first n bytes and "…".
func Short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:Boundary(s, n)], ""), " \t\n") + "…"
}

// Line returns s on one line, or its first n characters and "…".
func Line(s string, n int) string {
	if len(s) > 16*n { // a character has a few bytes: the rest is not needed
		s = s[:Boundary(s, 16*n)]
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:Boundary(s, i)] + "…"
		}
	}
	return s
}

// Head returns s, or about its first n bytes and a note on how much is missing. The note is not counted.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := Boundary(s, n)
	return s[:cut] + " " + OmittedNote(utf8.RuneCountInString(s[cut:]))
}

// Middle returns s, or about its first and last n/2 bytes with a note between them on how much is missing.
// The note is not counted.
func Middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head := Boundary(s, n/2)
	tail := Boundary(s, len(s)-n/2)
	return s[:head] + "\n" + OmittedNote(utf8.RuneCountInString(s[head:tail])) + "\n" + s[tail:]
}

// Wrap wraps a text at that many characters; all lines but the first begin with the indent.
func Wrap(text string, columns int, indent string) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// OmittedNote returns the note for n missing characters.
func OmittedNote(n int) string { return leftOpen + Number(n) + leftClose }

// Number writes an integer with commas between thousands.
func Number(n int) string {
	digits := strconv.Itoa(max(n, -n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if n < 0 {
		return "-" + digits
	}
	return digits
}

// Turns names a range of turns, such as "turn 3" and "turns 3 to 5".
func Turns(first, last int) string {
	if first == last {
		return "turn " + strconv.Itoa(first)
	}
	return "turns " + strconv.Itoa(first) + " to " + strconv.Itoa(last)
}

// Count writes a number with its noun, such as "1 message" and "2,000 messages".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Number(n) + " " + noun
}
