package standing

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
)

// classText has a line for each class of words that mean the same: its name, then words or
// their beginnings. "_" is a space; one at the end says that the word ends there, as words of
// up to three letters do.
//
//go:embed classes.txt
var classText string

// class is what a word belongs to. The beginnings of words have the class 0.
type class struct {
	number uint64
	whole  bool // no letter may follow
}

// classOf has the classes of words, and of their beginnings, by their hash. A word belongs to
// the first class that names it.
var classOf = sync.OnceValue(func() map[uint64]class {
	all := map[uint64]class{}
	plain := strings.NewReplacer("'", "", "_", " ")
	for i, line := range strings.Split(strings.TrimSpace(classText), "\n") {
		for _, word := range strings.Fields(line)[1:] {
			word = plain.Replace(word)
			runes := []rune(strings.TrimRight(word, " "))
			h := uint64(1)
			for _, c := range runes {
				h = mix(h, uint64(c))
				if _, ok := all[h]; !ok {
					all[h] = class{} // the beginning of a word
				}
			}
			if all[h].number == 0 {
				all[h] = class{uint64(i + 1), len(runes) < len([]rune(word)) || len(runes) <= 3 && !isSyllable(runes[0])}
			}
		}
	}
	return all
})

// longestWord is how many characters of a text are looked up together.
const longestWord = 24

// classes yields the classes of words in their order: of those that begin at a place, that of
// the longest.
func (r *reading) classes(yield func(uint64) bool) {
	of := classOf()
	joined := func(at int) bool { // a word goes on
		return at < r.length && unicode.IsLetter(r.runes[at]) && !isSyllable(r.runes[at])
	}
	for i := 1; i < r.length; i++ {
		if r.runes[i] == ' ' || joined(i) && joined(i-1) {
			continue
		}
		h, best, end := uint64(1), uint64(0), i
		for j := i; j < min(i+longestWord, r.length); j++ {
			h = mix(h, uint64(r.runes[j]))
			c, ok := of[h]
			if !ok {
				break
			}
			if c.number > 0 && !(c.whole && joined(j+1)) {
				best, end = c.number, j
			}
		}
		if best > 0 && !yield(best) {
			return
		}
		i = end
	}
}
