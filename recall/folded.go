package recall

import (
	"strings"
	"unicode/utf8"
)

// folded is a phrase that is sought in any case. A character does not match its other case if that has
// another number of bytes.
type folded struct {
	phrase string
	// rare is the place of the rarest character of ASCII in it, which is looked for, in both cases; -1
	// for none.
	rare  int
	cases [2]byte
}

// byFrequency are characters of texts, the most frequent first; others are rare.
const byFrequency = " etaoinsrldcuhmpgfyb.w_vkx/-(),:0=123456789"

func newFolded(phrase string) folded {
	f := folded{phrase: phrase, rare: -1}
	rarest := -1
	for i := range len(phrase) {
		c := phrase[i]
		if c >= utf8.RuneSelf {
			continue
		}
		other := c
		if letter := c | 0x20; 'a' <= letter && letter <= 'z' {
			c, other = letter, letter^0x20
		}
		rank := strings.IndexByte(byFrequency, c)
		if rank < 0 {
			rank = len(byFrequency)
		}
		if rank > rarest {
			rarest, f.rare, f.cases = rank, i, [2]byte{c, other}
		}
	}
	return f
}

// index is where a text contains the phrase, -1 for nowhere.
func (f *folded) index(s string) int {
	if f.phrase == "" {
		return -1
	}
	last := len(s) - len(f.phrase)
	if f.rare < 0 {
		for at := 0; at <= last; at++ {
			if utf8.RuneStart(s[at]) && strings.EqualFold(s[at:at+len(f.phrase)], f.phrase) {
				return at
			}
		}
		return -1
	}
	next := [2]int{-1, -1} // the next of each case
	for at := 0; at <= last; at++ {
		for k, c := range f.cases {
			if next[k] >= at {
				continue
			}
			if next[k] = last + 1; k == 0 || c != f.cases[0] {
				if n := strings.IndexByte(s[at+f.rare:last+f.rare+1], c); n >= 0 {
					next[k] = at + n
				}
			}
		}
		if at = min(next[0], next[1]); at <= last && strings.EqualFold(s[at:at+len(f.phrase)], f.phrase) {
			return at
		}
	}
	return -1
}

// inWord reports whether a text contains the phrase with nothing of a word beside it.
func (f *folded) inWord(text string) bool {
	for from := 0; ; from++ {
		at := f.index(text[from:])
		if at < 0 {
			return false
		}
		from += at
		end := from + len(f.phrase)
		if (from == 0 || classOf(text[from-1]) != letter) && (end == len(text) || classOf(text[end]) != letter) {
			return true
		}
	}
}
