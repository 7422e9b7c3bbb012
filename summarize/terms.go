package summarize

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// terms are the content words of the pool, with their frequency. A
// summary that covers the frequent ones once tells more than one that repeats itself
// (Gillick and Favre 2009, "A Scalable Global Model for Summarization").
type terms struct {
	id    map[string]int32
	count []float32 // how many pieces hold it
	last  []int     // the position of the last message that holds it
}

// termsOf lists the terms of a text.
func termsOf(s string) []string { return slices.Collect(stems(s)) }

// add counts the terms of a piece of the message at a position and returns their ids.
func (t *terms) add(at int, all []string) []int32 {
	if t.id == nil {
		t.id = map[string]int32{}
	}
	numbers := make([]int32, len(all))
	for i, s := range all {
		n, ok := t.id[s]
		if !ok {
			n = int32(len(t.count))
			t.id[s], t.count, t.last = n, append(t.count, 0), append(t.last, at)
		}
		t.count[n]++
		t.last[n] = max(t.last[n], at)
		numbers[i] = n
	}
	return numbers
}

// stems yields the different stems of a text: the first five letters, in lower case, of each
// word of four letters or more, and every two neighbouring characters of scripts without
// spaces.
func stems(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		emit := func(w string) bool {
			if seen[w] || stopWords[w] {
				return true
			}
			seen[w] = true
			return yield(w)
		}
		var last rune
		start, n := -1, 0 // of the word, in bytes, and its length in characters
		cut := 0          // where its fifth character ends
		flush := func(end int) bool {
			ok := true
			if start >= 0 && n >= 4 {
				if n < 5 {
					cut = end
				}
				ok = emit(strings.ToLower(s[start:cut]))
			}
			start, n = -1, 0
			return ok
		}
		for i, r := range s {
			switch {
			case wide(r):
				if !flush(i) || last != 0 && !emit(string([]rune{last, r})) {
					return
				}
				last = r
				continue
			case unicode.IsLetter(r):
				if start < 0 {
					start = i
				}
				if n++; n == 5 {
					cut = i + utf8.RuneLen(r)
				}
			case !flush(i):
				return
			}
			last = 0
		}
		flush(len(s))
	}
}

// stemsOf is the set of the stems of texts.
func stemsOf(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, s := range texts {
		for w := range stems(s) {
			set[w] = true
		}
	}
	return set
}

// wide reports whether a character belongs to a script without spaces between words.
func wide(r rune) bool {
	return r >= 0x0e00 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai))
}

// stopWords are frequent words as stems yields them.
var stopWords = scan.WordSet("that with this from which were have been will shoul when then also into becau after befor using used uses does done " +
	"some they there their them must only more most than such each other about over under while where whose would could being still")
