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
	each := func(i int, yield func(text string)) {
		text := entries[i].Text
		if len(text) > keywordText {
			yield(text[:keywordText/2])
			text = text[len(text)-keywordText/2:]
		}
		yield(text)
		yield(entries[i].Summary)
	}
	words := newAnalysis() // its counts are of entries
	var last []int         // entry that has the term
	for i := range entries {
		each(i, func(text string) {
			eachToken(text, func(token string, _ grain, _, _ int) {
				id := words.term(token)
				if int(id) == len(last) {
					last = append(last, -1)
				}
				if last[id] < i {
					last[id] = i
					words.counts[id]++
				}
			})
		})
	}
	type candidate struct {
		spelling string
		count    int
		score    float64
	}
	found := map[int32]*candidate{}
	for i := range entries {
		clear(found)
		each(i, func(text string) {
			eachWhole(text, func(from, to int, _ bool) {
				token := lower(text[from:to])
				if len(token) < minKeyword || len(token) > maxKeyword {
					return
				}
				id := words.terms[token]
				c := found[id]
				if c == nil {
					if from > 0 && text[from-1] == '/' {
						from-- // an absolute path keeps its root
					}
					spelling := text[from:to]
					c = &candidate{spelling: spelling, score: rarity(len(entries), int(words.counts[id]), true) * nameScore(spelling)}
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
