package summarize

import (
	"iter"
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

// stems yields the different stems of a text but those of stop words.
func stems(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[string]bool{}
		allStems(s)(func(w string) bool {
			known := seen[w] || stopWords[w]
			seen[w] = true
			return known || yield(w)
		})
	}
}

// allStems yields the stems of a text: the first five letters, in lower case, of each word of four
// letters or more, and every two neighbouring characters of scripts without spaces.
func allStems(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		var last rune
		start, n, cut := 0, 0, 0 // of the word: where it begins, its length in characters, and where the fifth ends
		for i, r := range s {
			apart := r >= utf8.RuneSelf && wide(r)
			if !apart && (r < utf8.RuneSelf && scan.IsLetter(byte(r)) || r >= utf8.RuneSelf && unicode.IsLetter(r)) {
				if n == 0 {
					start = i
				}
				if n++; n <= 5 {
					cut = i + utf8.RuneLen(r)
				}
				last = 0
				continue
			}
			if n >= 4 && !yield(strings.ToLower(s[start:cut])) || apart && last != 0 && !yield(string([]rune{last, r})) {
				return
			}
			if n, last = 0, 0; apart {
				last = r
			}
		}
		if n >= 4 {
			yield(strings.ToLower(s[start:cut]))
		}
	}
}

// stemsOf is the set of the stems of a text.
func stemsOf(s string) map[string]bool {
	set := map[string]bool{}
	for w := range stems(s) {
		set[w] = true
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
