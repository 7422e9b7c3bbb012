package token

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the class of a character in the splitting rules of the OpenAI encodings.
type class uint8

const (
	other   class = iota // punctuation, symbols, controls, unassigned
	upper                // Lu, Lt
	lower                // Ll
	letter               // Lm, Lo: letters without case
	mark                 // M
	number               // N
	space                // white space that ends no line
	newline              // \r, \n
)

// Sets of classes, one bit each.
const (
	letters   = 1<<upper | 1<<lower | 1<<letter
	upperRun  = 1<<upper | 1<<letter | 1<<mark // o200k: [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	lowerRun  = 1<<lower | 1<<letter | 1<<mark // o200k: [\p{Ll}\p{Lm}\p{Lo}\p{M}]
	symbols   = 1<<other | 1<<mark             // [^\s\p{L}\p{N}]
	blanks    = 1<<space | 1<<newline          // \s
	endsLines = 1 << newline
)

func (c class) in(set uint) bool { return set>>c&1 != 0 }

// classTable holds the class of every character of the basic plane.
type classTable [1 << 16]class

// classes is built on first use, which is faster than a table of 64 KB in the program.
var classes = sync.OnceValue(func() *classTable {
	t := new(classTable)
	for _, g := range classGroups {
		for _, r := range g.table.R16 {
			for c := uint32(r.Lo); c <= uint32(r.Hi); c += uint32(r.Stride) {
				t[c] = g.class
			}
		}
	}
	t['\r'], t['\n'] = newline, newline
	return t
})

var classGroups = [...]struct {
	table *unicode.RangeTable
	class class
}{
	{unicode.Lu, upper}, {unicode.Lt, upper}, {unicode.Ll, lower}, {unicode.Lm, letter}, {unicode.Lo, letter},
	{unicode.M, mark}, {unicode.N, number}, {unicode.White_Space, space},
}

// at returns the class and the width in bytes of the character at s[i]. The
// text must be valid UTF-8.
func (t *classTable) at(s string, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if r < 1<<16 {
		return t[r], n
	}
	for _, g := range classGroups {
		if unicode.Is(g.table, r) {
			return g.class, n
		}
	}
	return other, n
}

// run returns the end of the longest run of characters of the set from i on.
func (t *classTable) run(s string, i int, set uint) int {
	for i < len(s) {
		c, n := t.at(s, i)
		if !c.in(set) {
			break
		}
		i += n
	}
	return i
}
