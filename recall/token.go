package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// grain says which part of the written text a token is.
type grain uint8

const (
	wholeToken     grain = iota // as it stands between spaces: a path, an identifier, a word
	baseName                    // the last element of a path
	wordPart                    // between the joiners of a whole one
	identifierPart              // a part of an identifier in camel or snake case
)

// The classes of bytes. Joiners belong to a token inside it, but not at its ends.
const (
	gap uint8 = iota
	letter
	joiner
)

func classOf(c byte) uint8 {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
		return letter
	case c == '.', c == '/', c == '\\', c == '-', c == '@':
		return joiner
	}
	return gap
}

// maxToken bounds a token, in bytes. Nobody asks for a longer one (encoded data); only its
// parts up to this length are indexed.
const maxToken = 96

// scanner cuts texts into tokens. It reuses a buffer and is not safe for concurrent use.
type scanner struct {
	buf []byte
	// wholesOnly leaves out the parts of tokens.
	wholesOnly bool
}

// scan calls yield for each token of s, in lower case, with its place in s. The bytes are
// valid until yield returns. Where spaces do not separate words, tokens are pairs of
// neighboring characters.
func (sc *scanner) scan(s string, yield func(token []byte, g grain, start, end int)) {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if classOf(c) == gap {
				i++
				continue
			}
		} else {
			r, n := utf8.DecodeRuneInString(s[i:])
			if isUnspaced(r) {
				i = sc.pairs(s, i, yield)
				continue
			}
			if !isWordRune(r) {
				i += n
				continue
			}
		}
		start := i
		compound := false
		for i < len(s) {
			c := s[i]
			if c < utf8.RuneSelf {
				k := classOf(c)
				if k == gap {
					break
				}
				compound = compound || k == joiner || c == '_' || ('A' <= c && c <= 'Z')
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(s[i:])
			if !isWordRune(r) || isUnspaced(r) {
				break
			}
			compound = compound || unicode.IsUpper(r)
			i += n
		}
		from, to := trimJoiners(s, start, i)
		if from == to {
			continue
		}
		sc.yieldToken(s, from, to, wholeToken, yield)
		if compound && !sc.wholesOnly {
			sc.split(s, from, to, yield)
		}
	}
}

func trimJoiners(s string, from, to int) (int, int) {
	for from < to && classOf(s[from]) == joiner {
		from++
	}
	for from < to && classOf(s[to-1]) == joiner {
		to--
	}
	return from, to
}

// split yields the base name, the words and the pieces of a whole token.
func (sc *scanner) split(s string, from, to int, yield func([]byte, grain, int, int)) {
	if slash := strings.LastIndexAny(s[from:to], `/\`); slash >= 0 {
		sc.yieldToken(s, from+slash+1, to, baseName, yield)
	}
	for i := from; i < to; {
		end := i
		for end < to && classOf(s[end]) != joiner {
			end++
		}
		if end > i {
			if i != from || end != to {
				sc.yieldToken(s, i, end, wordPart, yield)
			}
			sc.pieces(s, i, end, yield)
		}
		i = end + 1
	}
}

// pieces yields the parts of an identifier: at underscores, where a capital
// follows a small letter, and before the last capital of several (HTTPServer).
func (sc *scanner) pieces(s string, from, to int, yield func([]byte, grain, int, int)) {
	start := from
	cut := func(at int) {
		a, b := start, at
		for a < b && s[a] == '_' {
			a++
		}
		for a < b && s[b-1] == '_' {
			b--
		}
		if a < b && (a != from || b != to) {
			sc.yieldToken(s, a, b, identifierPart, yield)
		}
		start = at
	}
	upper := func(i int) bool { return i < to && 'A' <= s[i] && s[i] <= 'Z' }
	lower := func(i int) bool { return i < to && ('a' <= s[i] && s[i] <= 'z' || s[i] >= utf8.RuneSelf) }
	for i := from + 1; i < to; i++ {
		switch {
		case s[i] == '_' && s[i-1] != '_':
			cut(i)
		case upper(i) && (lower(i-1) || '0' <= s[i-1] && s[i-1] <= '9'):
			cut(i)
		case upper(i) && upper(i-1) && lower(i+1):
			cut(i)
		}
	}
	cut(to)
}

// pairs yields the pairs of neighboring characters in a run of such a script, or a single
// character.
func (sc *scanner) pairs(s string, i int, yield func([]byte, grain, int, int)) int {
	before, at := -1, i
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !isUnspaced(r) {
			break
		}
		if before >= 0 {
			sc.yieldToken(s, before, at+n, wholeToken, yield)
		}
		before, at = at, at+n
	}
	if before == i {
		sc.yieldToken(s, i, at, wholeToken, yield)
	}
	return at
}

func (sc *scanner) yieldToken(s string, from, to int, g grain, yield func([]byte, grain, int, int)) {
	if to-from > maxToken || (to-from < 2 && g != wholeToken) {
		return
	}
	sc.buf = sc.buf[:0]
	for i := from; i < to; i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			sc.buf = append(sc.buf, strings.ToLower(s[i:to])...)
			break
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		sc.buf = append(sc.buf, c)
	}
	yield(sc.buf, g, from, to)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r))
}

// isUnspaced reports whether a character belongs to a script that is written without
// spaces between words, or, as Hangul, with particles at their ends.
func isUnspaced(r rune) bool {
	const long, halfwidthLong = 'ー', 'ｰ' // of Katakana and Hiragana, so of no script of their own
	return r >= 0x0E00 && (r == long || r == halfwidthLong ||
		unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar))
}
