package token

import "unicode/utf8"

// estimate counts by content class in one pass and without memory: a text is a
// row of runs (words, digits, punctuation, white space, other scripts), and a
// run costs so much to begin and so much for each character. Costs are in
// thousandths of a token.
//
// Base64, hashes and minified code need no class of their own: case changes and
// digits end a word, so they fall into many short runs, as they do in a
// byte-pair encoding.
type estimate struct {
	word      int64 // a run of ASCII letters of one case, a capital first allowed
	wordChar  int64 // each letter after the fourth
	digit     int64 // each digit
	mark      int64 // the first of a run of ASCII punctuation
	markMore  int64 // each further one
	spaces    int64 // a run of blanks or tabs, but for the one before a word
	spaceMore int64 // each blank after the second in it
	line      int64 // a run of line ends
	latin     int64 // each letter of Latin, Greek, Cyrillic and the like beyond ASCII
	script    int64 // each letter of other alphabets (Arabic, Hindi, Thai, …)
	cjk       int64 // each Chinese, Japanese or Korean character
	symbol    int64 // each other symbol: box drawing, arrows, emoji
	control   int64 // each control character or invalid byte
}

func (e *estimate) count(s string) int { return int((e.millis(s) + 999) / 1000) }

func (e *estimate) millis(s string) int64 {
	var n int64
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c-'a' < 26 || c-'A' < 26:
			j := i + 1
			if c-'A' < 26 {
				for j < len(s) && s[j]-'A' < 26 {
					j++
				}
			}
			if c-'a' < 26 || j == i+1 {
				for j < len(s) && s[j]-'a' < 26 {
					j++
				}
			}
			n += e.word
			if more := j - i - 4; more > 0 {
				n += int64(more) * e.wordChar
			}
			i = j
		case c-'0' < 10:
			n += e.digit
			i++
		case c == ' ' || c == '\t':
			j := i + 1
			for j < len(s) && (s[j] == ' ' || s[j] == '\t') {
				j++
			}
			if k := j - i; k > 1 || c == '\t' {
				n += e.spaces + int64(max(0, k-2))*e.spaceMore
			}
			i = j
		case c == '\n' || c == '\r':
			n += e.line
			for i++; i < len(s) && (s[i] == '\n' || s[i] == '\r'); i++ {
			}
		case c < ' ' || c == 0x7f:
			n += e.control
			i++
		case c < utf8.RuneSelf:
			n += e.mark
			j := i + 1
			for j < len(s) && isMark(s[j]) {
				j++
			}
			n += int64(j-i-1) * e.markMore
			i = j
		default:
			r, size := utf8.DecodeRuneInString(s[i:])
			n += e.rune(r, size)
			i += size
		}
	}
	return n
}

func isMark(c byte) bool {
	return c > ' ' && c < 0x7f && c-'a' >= 26 && c-'A' >= 26 && c-'0' >= 10
}

func (e *estimate) rune(r rune, size int) int64 {
	switch {
	case r == utf8.RuneError && size == 1:
		return e.control
	case r < 0x590: // Latin, Greek, Cyrillic, Armenian
		return e.latin
	case r < 0x1100 || r >= 0x1200 && r < 0x2000:
		return e.script
	case r >= 0x2E80 && r < 0xA000, r >= 0xAC00 && r < 0xD7B0, r < 0x1200, r >= 0xF900 && r < 0xFB00, r >= 0xFF00 && r < 0xFFF0, r >= 0x20000 && r < 0x40000:
		return e.cjk
	case r < 0x2070: // general punctuation: dashes, quotes, joiners
		return e.latin
	case r >= 0xA000 && r < 0xAC00:
		return e.script
	}
	return e.symbol
}

// The estimates. See docs/tokens.md for what they were fitted to.
var (
	claude = estimate{word: 1150, wordChar: 130, digit: 600, mark: 900, markMore: 350, spaces: 700, spaceMore: 20, line: 700,
		latin: 800, script: 1500, cjk: 1400, symbol: 2000, control: 1500}
	claude47 = claude.times(1350)
	gemini   = claude.times(900)
)

// times returns the estimate with every cost multiplied by k/1000.
func (e estimate) times(k int64) estimate {
	for _, c := range []*int64{&e.word, &e.wordChar, &e.digit, &e.mark, &e.markMore, &e.spaces, &e.spaceMore, &e.line,
		&e.latin, &e.script, &e.cjk, &e.symbol, &e.control} {
		*c = *c * k / 1000
	}
	return e
}

const (
	claudeBand   = 0.15
	claude47Band = 0.20
	geminiBand   = 0.25
	ratioBand    = 0.50
	strangerBand = 0.15
)
