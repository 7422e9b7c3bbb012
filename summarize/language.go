package summarize

import (
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// scripts are told apart by their letters. Kana and Han are one: Japanese mixes
// them.
var scripts = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Devanagari, unicode.Thai, unicode.Hangul}

// languages are told apart by their smallest words.
var languages = [...]string{
	" the and of to in is that for with was are this not be it as on from has have by or which were will ",
	" der die das und ist nicht mit ein eine den dem von zu im auf wird für sich auch wurde werden sind bei aus ",
	" le la les des et est un une dans que pour pas sur avec du au sont par plus qui cette être a été ",
	" el los las y es en un una que por con para del se no al como más pero sus está fue son ",
	" il che di e un una per non con del della sono gli nel più questo alla è stato anche dei delle ",
	" o os as e do da em um uma não para com que dos das foi são mais pelo pela como está ao ",
	" de het een van en is dat niet met voor op zijn wordt aan door bij ook naar deze werd om ",
}

const (
	// sampleBytes is how much of a text is looked at.
	sampleBytes = 40_000
	// sureLetters and sureWords are what it takes to be sure.
	sureLetters, sureWords = 40, 6
)

// speech is what a text is written in, -1 where that cannot be told.
type speech struct{ script, language int }

func speechOf(s string) speech {
	s = s[:min(len(s), sampleBytes)]
	counts := make([]int, len(scripts)+1)
	letters := 0
	for _, r := range s {
		if !unicode.IsLetter(r) {
			continue
		}
		letters++
		at := len(scripts)
		for i, t := range scripts {
			if unicode.Is(t, r) {
				at = i
				break
			}
		}
		counts[at]++
	}
	out := speech{-1, -1}
	if letters < sureLetters {
		return out
	}
	for i, n := range counts {
		// Code and names are Latin in every language.
		if i > 0 && n*5 > letters || i == 0 && n*10 > letters*9 {
			out.script = i
		}
	}
	if out.script != 0 {
		return out
	}
	var hits [len(languages)]int
	for _, w := range strings.Fields(strings.ToLower(s)) {
		w = strings.Trim(w, ".,;:!?()\"'")
		if w == "" {
			continue
		}
		for i := range languages {
			if strings.Contains(languages[i], " "+w+" ") {
				hits[i]++
			}
		}
	}
	best, second := 0, 0
	for i, n := range hits {
		if n > hits[best] {
			best = i
		}
	}
	for i, n := range hits {
		if i != best {
			second = max(second, n)
		}
	}
	if hits[best] >= sureWords && hits[best]*2 >= second*3 {
		out.language = best
	}
	return out
}

// otherLanguage reports whether a text is surely in a language that neither the
// user nor the assistant speaks.
func (g *grounds) otherLanguage(text string) bool {
	got := speechOf(text)
	if got.script < 0 {
		return false
	}
	var user, assistant strings.Builder
	for i := range g.messages {
		switch m := &g.messages[i]; {
		case m.StartsTurn():
			user.WriteString(m.Text() + "\n")
		case m.Role == thread.Assistant:
			assistant.WriteString(m.Text() + "\n")
		}
	}
	sure := false
	for _, s := range [...]string{user.String(), assistant.String()} {
		have := speechOf(s)
		if have.script < 0 {
			continue
		}
		if have.script == got.script && (got.language < 0 || have.language < 0 || have.language == got.language) {
			return false
		}
		sure = true
	}
	return sure
}
