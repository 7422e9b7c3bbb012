package summarize

import (
	_ "embed" // the sentences that say nothing
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
)

// saysNothing are sentences in many languages that could follow any conversation: refusals,
// apologies, questions back. Their words show nothing about one.
//
//go:embed says_nothing.txt
var saysNothing string

// emptyWords are the stems of those sentences.
var emptyWords = sync.OnceValue(func() map[string]bool { return stemsOf(saysNothing) })

// The more a text stands for, the more words of it are there by chance: of a span of at least so many
// bytes, a text must name one word more for each.
var spanSizes = [...]int{2_000, 20_000, 150_000}

// leastShare is the least share of a text's words, as one in so many, that must be such.
const leastShare = 5

// Names reports whether a text shows that it is about the messages: it has an identifier or a
// number that stands in them, or some of the words that not every conversation has. A refusal has
// none, however it is worded. Of messages that have no such words themselves any text does.
func (g *Grounds) Names(text string) bool { return g.g.names(text) }

func (g *grounds) names(text string) bool {
	named := false
	var b strings.Builder
	for line := range strings.Lines(text) {
		if isHeading(line, bare(line)) {
			continue // it is the form that was asked for
		}
		b.WriteString(line)
		numbers(unmarked(line), func(n number) { named = named || g.holdsNumber(n) })
	}
	text = b.String()
	ident.Extract(text, func(x ident.Ident) {
		switch x.Type {
		case ident.Quoted, ident.Name, ident.Number:
		default:
			named = named || g.occurs(g.all, x.Surface) || g.occurs(g.all, x.Norm)
		}
	})
	if named {
		return true
	}
	need := 1
	for _, size := range spanSizes {
		if len(g.all) >= size {
			need++
		}
	}
	// In thirds of a word: a pair of characters of a script without spaces counts one.
	found, total := 0, 0
	for w := range stems(text) {
		weight := 3
		if r, _ := utf8.DecodeRuneInString(w); wide(r) {
			weight = 1
		}
		total += weight
		if g.words[w] && !emptyWords()[w] {
			found += weight
		}
	}
	if found >= 3*need && leastShare*found >= total || found > 0 && 4*found >= 3*total { // or it is of nothing else
		return true
	}
	for w := range g.words {
		if !emptyWords()[w] {
			return false
		}
	}
	return true
}
