package lost

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/standing"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// seen is text that the model sees, for the question whether something is told in it in any wording. In doubt it is.
type seen struct {
	letters string          // all of it as lettersOf writes it, texts parted by a space
	stems   map[uint64]bool // of its words
	foreign bool            // it is in another language than the person's: names alone tell
}

const (
	// passageBytes is how much of a text is read at once for its stems.
	passageBytes = 240
	// leastShared is how much of the words of the person, counted as often as they say them, stands at least in a
	// text of their language. Of English ones .48 or more stood in the summaries of 29 English sessions, and .26 of
	// others in one of 75 words; of sentences in eight other languages .14 or fewer in all but one.
	leastShared = 0.2
)

// see reads texts. said is what the person says.
func see(texts []string, said []summary.Item) *seen {
	s := &seen{stems: map[uint64]bool{}}
	var letters strings.Builder
	for _, text := range texts {
		letters.WriteString(" " + lettersOf(text))
		for len(text) > 0 {
			end := max(1, clip.CutBefore(text, passageBytes))
			for _, stem := range standing.Stems(text[:end]) {
				s.stems[stem] = true
			}
			text = text[end:]
		}
	}
	s.letters = letters.String()
	shared, all := 0, 0
	for _, it := range said {
		for _, stem := range standing.Stems(it.Text) {
			all++
			if s.stems[stem] {
				shared++
			}
		}
	}
	s.foreign = float64(shared) < leastShared*float64(all)
	return s
}

// texts are the texts of a message, with the arguments and results of calls.
func texts(m *thread.Message) []string {
	all := []string{m.Text()}
	for _, c := range m.Calls() {
		all = append(all, c.Arguments)
	}
	if r, ok := m.Result(); ok {
		all = append(all, r.Text())
	}
	return all
}

// lettersOf is a text as letters, digits and number signs in lower case: what is written apart, joined or with other
// marks is the same.
func lettersOf(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '#' {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// testMarks are what the names of tests have beside those of what they test.
var testMarks = strings.NewReplacer("_test", "", "test_", "", ".test", "", "-test", "", ".spec", "", "_spec", "")

// name reports whether a thing is told in any spelling: a file by its name without the ending, a pull request by its
// number, an address without its scheme, a hash by its beginning.
func (s *seen) name(kind ident.Type, text string) bool {
	base := path.Base(strings.ReplaceAll(text, `\`, "/"))
	names := []string{text[strings.Index(text, "//")+1:]}
	switch {
	case kind == ident.Path:
		names = []string{testMarks.Replace(strings.TrimSuffix(base, path.Ext(base)))}
	case kind == ident.URL && strings.Trim(base, "0123456789") == "":
		names = []string{"#" + base, "pr" + base, "mr" + base, "request" + base, "pull" + base, "issue" + base}
	case kind == ident.Hex:
		names = []string{text[:min(len(text), 7)]}
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(s.letters, lettersOf(name)) })
}

const (
	// usual is how rare a word is at most, by the table of package standing, that says nothing of what a sentence
	// is about; what is rarer weighs by how much. rareWord is how rare one is that is counted.
	usual, rareWord = 80, 112
	// mostTold is how much of the rare words of a sentence may stand in what is told where the sentence is missing,
	// and leastMissing how many must not stand there.
	mostTold, leastMissing = 0.45, 2
)

// sentence reports whether a sentence is told, in its words or others: a name in it is, or many of its rare words.
func (s *seen) sentence(text string) bool {
	named := false
	for _, x := range ident.All(text) {
		if x.Type == ident.Quoted {
			continue
		}
		if named = true; s.name(x.Type, x.Norm) {
			return true
		}
	}
	if s.foreign {
		return !named
	}
	whole, told, missing, table := 0, 0, 0, standing.Learned()
	for _, stem := range standing.Stems(text) {
		rare := int(table[standing.RareAt(stem)])
		whole += max(0, rare-usual)
		if s.stems[stem] {
			told += max(0, rare-usual)
		} else if rare >= rareWord {
			missing++
		}
	}
	return float64(told) > mostTold*float64(whole) || missing < leastMissing
}
