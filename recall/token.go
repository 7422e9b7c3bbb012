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

// eachToken calls yield for each token of s, in lower case, with its place in s. Where spaces do not
// separate words, tokens are pairs of neighboring characters.
func eachToken(s string, yield func(token string, g grain, start, end int)) {
	eachWhole(s, func(from, to int, compound bool) { tokensOf(s, from, to, compound, yield) })
}

// eachWhole calls yield for each whole token of s. A compound one may have parts.
func eachWhole(s string, yield func(from, to int, compound bool)) {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if classOf(c) == gap {
				i++
				continue
			}
		} else {
			r, n := utf8.DecodeRuneInString(s[i:])
			if isUnspaced(r) {
				i = eachPair(s, i, yield)
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
		if from, to := trimJoiners(s, start, i); from < to {
			yield(from, to, compound)
		}
	}
}

// tokensOf yields a whole token, unless it is too long, and its parts.
func tokensOf(s string, from, to int, compound bool, yield func(token string, g grain, start, end int)) {
	put := func(from, to int, g grain) {
		if to-from <= maxToken && (to-from > 1 || g == wholeToken) {
			yield(lower(s[from:to]), g, from, to)
		}
	}
	put(from, to, wholeToken)
	if compound {
		split(s, from, to, put)
	}
}

// lower is a word in lower case. A Greek one may end in a sigma of its own, which has no other in upper case.
func lower(word string) string {
	word = strings.ToLower(word)
	if begin, ends := strings.CutSuffix(word, "ς"); ends {
		return begin + "σ"
	}
	return word
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
func split(s string, from, to int, put func(from, to int, g grain)) {
	if slash := strings.LastIndexAny(s[from:to], `/\`); slash >= 0 {
		put(from+slash+1, to, baseName)
	}
	for i := from; i < to; {
		end := i
		for end < to && classOf(s[end]) != joiner {
			end++
		}
		if end > i {
			if i != from || end != to {
				put(i, end, wordPart)
			}
			identifierParts(s, i, end, put)
		}
		i = end + 1
	}
}

// identifierParts yields the parts of an identifier: at underscores, where a capital
// follows a small letter, and before the last capital of several (HTTPServer).
func identifierParts(s string, from, to int, put func(from, to int, g grain)) {
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
			put(a, b, identifierPart)
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

// eachPair yields the pairs of neighboring characters in a run of such a script, or a single
// character.
func eachPair(s string, i int, yield func(from, to int, compound bool)) int {
	before, at := -1, i
	for at < len(s) {
		r, n := utf8.DecodeRuneInString(s[at:])
		if !isUnspaced(r) {
			break
		}
		if before >= 0 {
			yield(before, at+n, false)
		}
		before, at = at, at+n
	}
	if before == i {
		yield(i, at, false)
	}
	return at
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
