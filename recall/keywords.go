package recall

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

const (
	// maxKeywords is how many keywords an entry has at most.
	maxKeywords = 12
	// minKeyword and maxKeyword bound their length, in bytes.
	minKeyword, maxKeyword = 3, 64
	// keywordText is how much of a text is searched for keywords, in bytes: half at its
	// beginning and half at its end. The index has all of it anyway.
	keywordText = 32 << 10
)

// AddKeywords gives each entry the words that distinguish it from the others: those that it
// repeats and few others have, names and paths before plain words. A search needs none.
func AddKeywords(entries []Entry) {
	x := newIndex(entries)
	each := func(i int, yield func(text string)) {
		text := entries[i].Text
		if len(text) > keywordText {
			yield(text[:keywordText/2])
			text = text[len(text)-keywordText/2:]
		}
		yield(text)
		yield(entries[i].Summary)
	}
	for i := range entries {
		each(i, func(text string) { x.add(i, text) })
	}
	type candidate struct {
		spelling string
		count    int
		score    float64
	}
	sc := scanner{wholesOnly: true}
	found := map[int32]*candidate{}
	for i := range entries {
		clear(found)
		each(i, func(text string) {
			sc.scan(text, func(token []byte, _ grain, from, to int) {
				if len(token) < minKeyword || len(token) > maxKeyword {
					return
				}
				id := x.terms[string(token)]
				c := found[id]
				if c == nil {
					if from > 0 && text[from-1] == '/' {
						from-- // an absolute path keeps its root
					}
					spelling := text[from:to]
					c = &candidate{spelling: spelling, score: x.rarity(len(x.postings[id]), true) * nameScore(spelling)}
					found[id] = c
				}
				c.count++
			})
		})
		best := make([]*candidate, 0, len(found))
		for _, c := range found {
			c.score *= 1 + math.Log(float64(c.count))
			if c.score > 0 {
				best = append(best, c)
			}
		}
		slices.SortFunc(best, func(a, b *candidate) int {
			return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.spelling, b.spelling))
		})
		for _, c := range best[:min(maxKeywords, len(best))] {
			entries[i].Keywords = append(entries[i].Keywords, strings.Clone(c.spelling))
		}
	}
}

// nameScore says how much a word looks like a name: paths, identifiers and longer numbers
// count more than prose, random strings less.
func nameScore(word string) float64 {
	var digits, capitals, joins int
	for i := range len(word) {
		switch c := word[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'A' <= c && c <= 'Z':
			capitals++
		case c == '_' || classOf(c) == joiner:
			joins++
		}
	}
	switch {
	case digits == len(word) && len(word) < 3:
		return 0
	case len(word) > 24 && joins == 0 && digits > 0:
		return 0.5
	case joins > 0 || digits > 0 || capitals > 1:
		return 2
	}
	return 1
}
