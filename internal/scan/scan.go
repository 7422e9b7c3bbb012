// Package scan reads text: its lines, sentences, words and numbers, as byte offsets or
// verbatim parts. It knows nothing of what the text is for. All of it is pure.
package scan

import (
	"iter"
	"regexp"
	"strings"
)

// Span is a part of a string, by byte offsets.
type Span struct{ From, To int }

// escape matches a terminal escape: CSI up to its final byte, OSC up to BEL or ST, two
// characters, or a lone ESC.
var escape = regexp.MustCompile(`\x1b(?:\[[^@-~]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b(?:\\|\z))?|[ -~])?`)

// Clean removes terminal escapes and carriage returns. A carriage return inside a line ends
// it: a progress bar overwrites itself.
func Clean(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = escape.ReplaceAllString(s, "")
	}
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(strings.TrimSuffix(s, "\r"), "\r\n", "\n")
		s = strings.ReplaceAll(s, "\r", "\n")
	}
	return s
}

// NextLine returns the line of s that begins at from, without its end, and where the next
// line begins.
func NextLine(s string, from int) (line Span, next int) {
	n := strings.IndexByte(s[from:], '\n')
	if n < 0 {
		return Span{from, len(s)}, len(s)
	}
	return Span{from, from + n}, from + n + 1
}

// Lines yields the lines of s, trimmed, with their number from 0.
func Lines(s string) iter.Seq2[int, Span] {
	return func(yield func(int, Span) bool) {
		for n, at := 0, 0; at < len(s); n++ {
			var p Span
			if p, at = NextLine(s, at); !yield(n, Trim(s, p)) {
				return
			}
		}
	}
}

// Trim trims white space off a span.
func Trim(s string, p Span) Span {
	for p.From < p.To && IsSpace(s[p.From]) {
		p.From++
	}
	for p.To > p.From && IsSpace(s[p.To-1]) {
		p.To--
	}
	return p
}

// IsSpace reports whether a byte is white space of ASCII.
func IsSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Prose yields the lines of a Markdown text that are outside of fenced code, trimmed.
func Prose(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		fenced := false
		for line := range strings.Lines(s) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
				fenced = !fenced
			case !fenced && !yield(line):
				return
			}
		}
	}
}

// Sentences yields the sentences of s: up to a line end, or to a full stop, question or
// exclamation mark that is followed by a space and does not go on in lower case ("e.g.
// this").
func Sentences(s string) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		from := 0
		for i := 0; i <= len(s); i++ {
			end := -1
			switch rest := s[i:]; {
			case rest == "" || rest[0] == '\n':
				end = i
			case rest[0] == '.' || rest[0] == '!' || rest[0] == '?':
				if len(rest) > 2 && rest[1] == ' ' && !isLower(rest[2]) && !abbreviates(s[from:i+1]) {
					end = i + 1
				}
			case rest[0] >= 0xe3 && (strings.HasPrefix(rest, "。") || strings.HasPrefix(rest, "！") || strings.HasPrefix(rest, "？")):
				end = i + len("。")
			}
			if end < 0 {
				continue
			}
			if p := Trim(s, Span{from, end}); p.From < p.To && !yield(p) {
				return
			}
			from = end
		}
	}
}

// abbreviates reports whether a text ends with an abbreviation that something follows.
func abbreviates(s string) bool {
	for _, short := range [...]string{"e.g.", "i.e.", "cf.", "vs."} {
		if rest, ok := strings.CutSuffix(s, short); ok && (rest == "" || !WordByte(rest[len(rest)-1])) {
			return true
		}
	}
	return false
}

// IsDigit reports whether a byte is a digit of ASCII.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

// IsLetter reports whether a byte is a letter of ASCII.
func IsLetter(c byte) bool { return isLower(Lower(c)) }

// WordByte reports whether a byte is part of a word or a name: beyond ASCII, every byte but
// 0xE2, which begins punctuation, arrows and box drawing.
func WordByte(c byte) bool { return wordBytes[c] }

var wordBytes = func() (is [256]bool) {
	for c := range 256 {
		is[c] = IsLetter(byte(c)) || IsDigit(byte(c)) || c == '_' || c >= 0x80 && c != 0xe2
	}
	return is
}()

// Lower returns a letter of ASCII in lower case, and every other byte as it is.
func Lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// HasPrefixFold reports whether s begins with low, in whatever case.
func HasPrefixFold(s, low string) bool {
	return len(s) >= len(low) && strings.EqualFold(s[:len(low)], low)
}

// MatchPhrase reports whether s begins with the phrase; the trailing space of a
// phrase matches the end of a word.
func MatchPhrase(s, p string) bool {
	k := 0 // in s; an apostrophe may take three bytes there
	for i := range len(p) {
		end := p[i] == ' ' && i == len(p)-1
		if k >= len(s) {
			return end && k == len(s)
		}
		c := Lower(s[k])
		switch {
		case end:
			return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_')
		case c == p[i]:
			k++
		case p[i] == '\'' && strings.HasPrefix(s[k:], "’"):
			k += len("’")
		default:
			return false
		}
	}
	return true
}

// WordSet makes a set of the words of a list.
func WordSet(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// Inverted makes a map from each word of the lists to the list's key.
func Inverted[V comparable](lists map[V]string) map[string]V {
	m := map[string]V{}
	for v, words := range lists {
		for w := range strings.FieldsSeq(words) {
			m[w] = v
		}
	}
	return m
}

// FirstWord is the first word of a text, or "".
func FirstWord(s string) string {
	for w := range strings.FieldsSeq(s) {
		return w
	}
	return ""
}
