package token

import (
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
)

// estimate counts by class of content in one pass: a text is a sequence of runs (words, digits,
// punctuation, white space, other scripts), and a run has a cost for its beginning and for each
// character. Costs are in thousandths of a token.
//
// Base64, hashes and keys are recognized as runs of letters and digits in which the kind of
// character changes all the time.
type estimate struct {
	word      int64 // a run of ASCII letters of one case, a capital first allowed
	wordChar  int64 // each letter after the fourth
	digit     int64 // each digit
	dense     int64 // the least for each character of base64, hex and the like
	mark      int64 // the first of a run of ASCII punctuation
	markMore  int64 // each further one
	spaces    int64 // a run of blanks or tabs, but for the one before a word
	spaceMore int64 // each blank after the second in it
	line      int64 // a run of line ends
	latin     int64 // each letter of Latin, Greek, Cyrillic and the like beyond ASCII
	script    int64 // each letter of other alphabets (Arabic, Hindi, Thai, …)
	cjk       int64 // each Chinese, Japanese or Korean character
	dash      int64 // each dash, curly quote, joiner
	symbol    int64 // each other symbol: box drawing, arrows, signs
	same      int64 // each further one of a row of one symbol
	emoji     int64 // each emoji or other character beyond the basic plane
	control   int64 // each control character or invalid byte
}

func (e *estimate) count(live *effort.Budget, s string) int {
	return int((e.millis(live, s) + 999) / 1000)
}

func (e *estimate) millis(live *effort.Budget, s string) int64 {
	var n int64
	for i, from := 0, 0; i < len(s); {
		if !live.Live(countEffort * (i - from)) {
			return 0
		}
		from = i
		c := s[i]
		switch {
		case isLetter(c) || c-'0' < 10:
			cost, end := e.alnum(s, i)
			n += cost
			i = end
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
			one := e.rune(r)
			n += one
			i += size
			if one == e.symbol {
				for i+size <= len(s) && s[i:i+size] == s[i-size:i] {
					n += e.same
					i += size
				}
			}
		}
	}
	return n
}

// denseLength is the shortest run of letters and digits that may be base64.
const denseLength = 16

// alnum returns the cost of the run of letters and digits at s[i], and its end.
func (e *estimate) alnum(s string, i int) (cost int64, end int) {
	start, parts := i, 0
	for i < len(s) {
		c, from := s[i], i
		switch {
		case c-'0' < 10:
			for i < len(s) && s[i]-'0' < 10 {
				i++
			}
			cost += int64(i-from) * e.digit
		case isLetter(c):
			i++
			if c-'A' < 26 {
				for i < len(s) && s[i]-'A' < 26 {
					i++
				}
			}
			if c-'a' < 26 || i == from+1 {
				for i < len(s) && s[i]-'a' < 26 {
					i++
				}
			}
			cost += e.word + int64(max(0, i-from-4))*e.wordChar
		default:
			return e.whole(cost, i-start, parts), i
		}
		parts++
	}
	return e.whole(cost, i-start, parts), i
}

// whole raises the cost of a run that changes between letters, digits and cases at least every
// three characters.
func (e *estimate) whole(cost int64, length, parts int) int64 {
	if length >= denseLength && parts*3 >= length {
		return max(cost, int64(length)*e.dense)
	}
	return cost
}

func isLetter(c byte) bool { return c-'a' < 26 || c-'A' < 26 }

func isMark(c byte) bool {
	return c > ' ' && c < 0x7f && !isLetter(c) && c-'0' >= 10
}

func (e *estimate) rune(r rune) int64 {
	switch {
	case r == utf8.RuneError: // invalid, or the mark of what was
		return e.control
	case r < 0x590: // Latin, Greek, Cyrillic, Armenian
		return e.latin
	case r < 0x1100 || r >= 0x1200 && r < 0x2000:
		return e.script
	case r >= 0x2E80 && r < 0xA000, r >= 0xAC00 && r < 0xD7B0, r < 0x1200, r >= 0xF900 && r < 0xFB00, r >= 0xFF00 && r < 0xFFF0, r >= 0x20000 && r < 0x40000:
		return e.cjk
	case r < 0x2070: // general punctuation: dashes, quotes, joiners
		return e.dash
	case r >= 0xA000 && r < 0xAC00:
		return e.script
	case r >= 1<<16:
		return e.emoji
	}
	return e.symbol
}

// The estimates. The measurements are in docs/tokens.md.
//
// Known: fitted was found by robust least squares on the growth of 1,396
// requests that Claude Opus 4.5, Opus 4.6 and Sonnet 4.5 answered without
// thinking; claude adds 4 percent to lean to the safe side. That text is English,
// code, JSON and terminal output: the costs of dense, latin, script, cjk, dash,
// symbol, same, emoji and control had too little of it and were set so that no
// class falls more than the band below the count of o200k.
//
// Known: Anthropic writes that Opus 4.7 and everything after it gives about 30
// percent more tokens, up to 35 by content; claude47 takes the most of that.
//
// Assumed: Gemini's vocabulary of 256,000 pieces is about as frugal as o200k.
var (
	fitted = estimate{word: 1030, wordChar: 130, digit: 660, dense: 750, mark: 980, markMore: 60, spaces: 720, spaceMore: 54, line: 1180,
		latin: 450, script: 650, cjk: 1100, dash: 1200, symbol: 1000, same: 100, emoji: 2500, control: 1500}
	claude   = fitted.scaledBy(1040)
	claude47 = claude.scaledBy(1350)
	gemini   = claude.scaledBy(900).digits(1000)
)

// digits returns the estimate with another cost of a digit: Gemini's vocabulary has no numbers
// of more than one digit.
func (e estimate) digits(cost int64) estimate {
	e.digit = cost
	return e
}

// scaledBy returns the estimate with every cost multiplied by k/1000.
func (e estimate) scaledBy(k int64) estimate {
	for _, c := range []*int64{&e.word, &e.wordChar, &e.digit, &e.dense, &e.mark, &e.markMore, &e.spaces, &e.spaceMore, &e.line,
		&e.latin, &e.script, &e.cjk, &e.dash, &e.symbol, &e.same, &e.emoji, &e.control} {
		*c = *c * k / 1000
	}
	return e
}

// The bands of the estimates; see Counter.Band. The first was measured (sessions are between 4
// percent below and 13 above); the others add the uncertainty of their assumptions.
const (
	claudeBand   = 0.15
	claude47Band = 0.20
	geminiBand   = 0.25
	ratioBand    = 0.50
	strangerBand = 0.15 // o200k for a model of another maker
)
