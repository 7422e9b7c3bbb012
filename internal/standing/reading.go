package standing

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// reading is a text as words and as characters, and what was counted on the way.
type reading struct {
	words [mostWords]uint64 // hashes
	n     int
	// runes are lower case, every digit 0, without apostrophes, with one space between words
	// and at both ends.
	runes  [mostText + 2]rune
	length int

	marks, code, numbers, commas, quotes int
	script                               rune // the block of the first letter
}

// Words that stand for any of their kind: which number or which path it is matters less.
const (
	number uint64 = 0x9e3779b97f4a7c15
	code   uint64 = 0xc2b2ae3d27d4eb4f
	mark   uint64 = 0x165667b19e3779f9
)

// read reads a text of at most mostText bytes, up to mostWords words. Numbers are one word
// whatever their digits; paths, names with marks or capitals inside, and what stands between
// backquotes, are another. A Chinese or Japanese character is a word, and so is a mark.
func (r *reading) read(s string) {
	r.put(' ')
	for at := 0; at < len(s) && r.n < mostWords; {
		c, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case unicode.IsSpace(c):
			r.put(' ')
		case c == '`' && strings.IndexByte(s[at+1:], '`') > 0:
			size = strings.IndexByte(s[at+1:], '`') + 2
			r.put(c)
			r.code++
			r.add(code)
		case isIdeograph(c):
			r.letter(c)
			r.add(mix(1, uint64(c)))
		case unicode.IsLetter(c) || unicode.IsDigit(c):
			size = r.readWord(s[at:])
		default:
			r.put(c)
			r.marks++
			r.add(mix(mark, uint64(c)))
			if strings.ContainsRune(",，、،", c) {
				r.commas++
			} else if strings.ContainsRune(`"“”„«»「」`, c) {
				r.quotes++
			}
		}
		at += size
	}
	r.put(' ')
}

// readWord reads the word that s begins with and returns its length in bytes.
func (r *reading) readWord(s string) int {
	h, at, letters, capitals, joints := uint64(1), 0, 0, 0, 0
	for at < len(s) {
		c, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case isIdeograph(c):
			size = 0
		case unicode.IsLetter(c) || unicode.IsMark(c):
			if unicode.IsUpper(c) && letters > 0 {
				capitals++
			}
			letters++
			c = unicode.ToLower(c)
			r.letter(c)
			h = mix(h, uint64(c))
		case unicode.IsDigit(c):
			r.put('0')
			h = mix(h, '0')
		case !strings.ContainsRune("_/.\\@=#'’", c) || !wordFollows(s[at+size:]):
			size = 0
		case c != '\'' && c != '’': // an apostrophe is left out: don't, dont
			joints++
			r.put(c)
		}
		if size == 0 {
			break
		}
		at += size
	}
	switch {
	case letters == 0:
		r.numbers++
		r.add(number)
	case joints > 0 || capitals > 0 && capitals < letters-1:
		r.code++
		r.add(code)
	default:
		r.add(h)
	}
	return at
}

// wordFollows reports whether a text begins with a letter or a digit.
func wordFollows(s string) bool {
	c, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(c) || unicode.IsDigit(c)
}

func (r *reading) add(word uint64) {
	if r.n < mostWords {
		r.words[r.n] = word
		r.n++
	}
}

func (r *reading) put(c rune) {
	if r.length == len(r.runes) || c == ' ' && r.length > 0 && r.runes[r.length-1] == ' ' {
		return
	}
	r.runes[r.length] = c
	r.length++
}

func (r *reading) letter(c rune) {
	r.put(c)
	if r.script == 0 {
		r.script = 1 + c>>8
	}
}

func isIdeograph(c rune) bool {
	return c >= 0x3040 && c < 0x3100 || c >= 0x3400 && c < 0xa000 || c >= 0xf900 && c < 0xfb00 || c >= 0x20000 && c < 0x32000
}

// isSyllable reports whether a word may begin at each of such characters.
func isSyllable(c rune) bool { return isIdeograph(c) || c >= 0xac00 && c < 0xd7b0 }
