package lost

import (
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// languages are words by which a language is known, each in one list only. Words can be compared within one.
var languages = scan.Inverted(map[string]string{
	"en": "the and not with for you this that use never always please don't of is are it be",
	"de": "der das und nicht mit für ich ist immer bitte nie kein keine ein eine den auf zu wir ohne",
	"fr": "le les et ne pas avec pour je est toujours jamais une des du nous vous dans",
	"es": "el los y con para siempre las del hay pero yo más sin muy",
	"pt": "os não com uma em você ao são mas também seu pelo",
	"it": "il gli e non mai della di per che sono anche questo",
	"nl": "het niet met voor altijd nooit een van ik zijn geen",
	"pl": "z na zawsze nigdy jest się proszę że dla",
})

// mostRead is how much of a text its language is told from, in bytes.
const mostRead = 16 << 10

// languageOf is the language of texts, by their script or commonest words; empty if that cannot be told.
func languageOf(texts ...string) (best string) {
	var b strings.Builder
	for i := 0; i < len(texts) && b.Len() < mostRead; i++ {
		b.WriteString(texts[i][:min(len(texts[i]), mostRead)] + "\n")
	}
	text := b.String()
	hits, letters := map[string]int{}, 0
	for _, c := range text {
		if unicode.IsLetter(c) {
			letters++
			hits[script(c)]++
		}
	}
	for _, script := range [...]string{"ja", "ko", "zh", "ru", "el", "other"} { // kana before what stands beside it
		if 5*hits[script] > letters {
			return script
		}
	}
	clear(hits)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool { return !unicode.IsLetter(c) && c != '\'' }) {
		hits[languages[word]]++
	}
	hits[""] = 0
	tie := false
	for language, n := range hits {
		if n > hits[best] {
			best, tie = language, false
		} else if n == hits[best] && language != best {
			tie = true
		}
	}
	if tie {
		return ""
	}
	return best
}

// script is the script of a letter; empty for Latin.
func script(c rune) string {
	switch {
	case c < 0x370:
		return ""
	case c < 0x400:
		return "el"
	case c < 0x530:
		return "ru"
	case c < 0x2e80:
		return "other"
	case c >= 0x3040 && c < 0x3100:
		return "ja"
	case c >= 0xac00 && c < 0xd7b0:
		return "ko"
	}
	return "zh"
}
