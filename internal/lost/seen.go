package lost

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/scan"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// seen is text that the model sees, for the question whether something is told in it in any wording. In doubt it is.
type seen struct {
	letters  string // letters and digits of all of it in lower case, texts parted by a space
	numbers  map[string]bool
	stems    map[uint64][]int // of its words, and the passages that hold each
	language string           // empty if unknown
}

// see reads texts.
func see(texts []string) *seen {
	s := &seen{numbers: map[string]bool{}, stems: map[uint64][]int{}, language: languageOf(texts...)}
	var letters strings.Builder
	passages := 0
	for _, text := range texts {
		letters.WriteString(" " + lettersOf(text))
		for _, number := range numbersIn(text) {
			s.numbers[number] = true
		}
		for passage := range pieces(text) {
			for _, stem := range standing.Stems(passage) {
				if len(s.stems[stem]) < mostPlaces {
					s.stems[stem] = append(s.stems[stem], passages)
				}
			}
			passages++
		}
		passages++ // no sentence goes over two texts
	}
	s.letters = letters.String()
	return s
}

// texts are the texts of a message, with the arguments and results of calls.
func texts(m *thread.Message) (all []string) {
	for _, part := range m.Parts {
		switch p := part.(type) {
		case thread.Text:
			all = append(all, p.Text)
		case thread.ToolCall:
			all = append(all, p.Arguments)
		case thread.ToolResult:
			all = append(all, p.Text())
		case thread.Media:
			all = append(all, p.Text)
		}
	}
	return all
}

// passageBytes is the length of a passage. What a sentence says may stand in two of them in a row.
const passageBytes = 240

// pieces cuts a text into passages, at the ends of lines or else of words.
func pieces(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(text) > 0 {
			end := min(passageBytes, len(text))
			if end < len(text) {
				line, word := strings.LastIndexByte(text[:end], '\n'), strings.LastIndexByte(text[:end], ' ')
				switch {
				case line > passageBytes/3:
					end = line + 1
				case word > 0:
					end = word + 1
				default:
					for end > 1 && !utf8.RuneStart(text[end]) {
						end--
					}
				}
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// lettersOf is a text as letters and digits in lower case: what is written apart, joined or with other marks is
// the same.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// numbersIn are the numbers of a text, without separators, "16k" as 16000 too; behind "#" also with it.
func numbersIn(text string) (all []string) {
	for i := 0; i < len(text); i++ {
		if !scan.IsDigit(text[i]) {
			continue
		}
		from := i
		for i < len(text) && (scan.IsDigit(text[i]) || strings.IndexByte(",._' ", text[i]) >= 0 && isGroup(text[i+1:])) {
			i++
		}
		number := strings.Map(onlyDigits, text[from:i])
		all = append(all, number)
		if from > 0 && text[from-1] == '#' {
			all = append(all, "#"+number)
		}
		if i < len(text) && thousands[scan.Lower(text[i])] != "" {
			all = append(all, number+thousands[scan.Lower(text[i])])
		}
	}
	return all
}

func onlyDigits(r rune) rune {
	if r >= '0' && r <= '9' {
		return r
	}
	return -1
}

// thousands are letters behind a number.
var thousands = map[byte]string{'k': "000", 'm': "000000"}

// isGroup reports whether three digits follow, as behind the separator of a large number.
func isGroup(s string) bool {
	return len(s) >= 3 && scan.IsDigit(s[0]) && scan.IsDigit(s[1]) && scan.IsDigit(s[2]) && (len(s) == 3 || !scan.IsDigit(s[3]))
}

// name reports whether a name is told.
func (s *seen) name(name string) bool { return strings.Contains(s.letters, lettersOf(name)) }

// testMarks are what the names of tests have beside those of what they test.
var testMarks = strings.NewReplacer("_test", "", "test_", "", ".test", "", "-test", "", ".spec", "", "_spec", "")

// file reports whether a file is told: by the end of its path, or its name without the ending.
func (s *seen) file(p string) bool {
	base := path.Base(strings.ReplaceAll(p, `\`, "/"))
	return s.name(base) || s.name(testMarks.Replace(strings.TrimSuffix(base, path.Ext(base))))
}

// ident reports whether an identifier is told.
func (s *seen) ident(x ident.Ident) bool {
	switch x.Type {
	case ident.Path:
		return s.file(x.Norm)
	case ident.URL:
		return s.address(x.Norm)
	case ident.Number:
		return slices.ContainsFunc(numbersIn(x.Surface), func(number string) bool { return s.numbers[number] })
	case ident.Hex:
		return s.name(x.Norm[:min(len(x.Norm), 7)])
	}
	return s.name(x.Norm)
}

// address reports whether an address is told: as it stands, or by the number that it ends with.
func (s *seen) address(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	number := path.Base(rest)
	return s.name(rest) || s.numbers["#"+number] || len(number) > 1 && s.numbers[number] || s.name("pr"+number) && strings.Trim(number, "0123456789") == ""
}

const (
	// usual is how rare a word is at most, by the table of package standing, that says nothing of what a sentence
	// is about; what is rarer weighs by how much. rareWord is how rare one is that is counted.
	usual, rareWord = 80, 112
	// mostNear and mostTold are how much of the rare words of a sentence may stand in one place of what is
	// told, and in all of it, where the sentence is missing; leastMissing is how many must not stand there.
	mostNear, mostTold, leastMissing = 0.45, 0.67, 2
	// mostPlaces is in how many passages a word is looked for.
	mostPlaces = 256
)

// sentence reports whether a sentence is told, in its words or others: many of its rare words stand in one place, most
// of them stand somewhere, or a name in it does. Where what is told is in another language, names alone tell. The
// language is that of the sentence, or else the one that its speaker uses.
func (s *seen) sentence(text, language string) bool {
	names := 0
	for _, x := range ident.All(text) {
		if x.Type != ident.Quoted && s.ident(x) {
			return true
		}
		names++
	}
	if cmp.Or(languageOf(text), language) != s.language {
		return names == 0
	}
	near, all, missing := s.shares(text)
	return near > mostNear || all > mostTold || missing < leastMissing
}

// shares says how much of the rare words of a sentence stands in one place, and in all that is told, each from 0
// to 1; and how many stand nowhere.
func (s *seen) shares(text string) (near, all float64, missing int) {
	table := standing.Learned()
	var whole, told int
	at := map[int]int{} // by passage, with the one behind it
	for _, stem := range standing.Stems(text) {
		rare, places := int(table[standing.RareAt(stem)]), s.stems[stem]
		weight := max(0, rare-usual)
		whole += weight
		if len(places) > 0 {
			told += weight
		} else if rare >= rareWord {
			missing++
		}
		for i, p := range places {
			if i == 0 || places[i-1] < p-1 {
				at[p-1] += weight
			}
			at[p] += weight
		}
	}
	best := 0
	for _, n := range at {
		best = max(best, n)
	}
	if whole == 0 {
		return 1, 1, 0
	}
	return float64(best) / float64(whole), float64(told) / float64(whole), missing
}
