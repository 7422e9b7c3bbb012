package standing

import (
	"slices"
	"unicode"
)

// Sentence is something that a person said, read once to be compared with others. It is for one goroutine.
type Sentence struct {
	text   string
	stems  []uint64
	scores [Outputs]int
	scored bool
}

// Read reads a sentence.
func Read(text string) *Sentence { return &Sentence{text: text, stems: Stems(text)} }

// Changes is how likely a later clause of the person changes or takes back an earlier one, so
// that the earlier must not stand without it: more likely than not from 0, and 100 more for
// each unit of log-odds. Clauses that share no word that is at all rare have the lowest score.
// Its work is bounded.
func Changes(later, earlier *Sentence) int { return learned.changes(later, earlier) }

// Changes is the score of a change by a table.
func (t Table) Changes(later, earlier string) int { return t.changes(Read(later), Read(earlier)) }

func (t Table) changes(later, earlier *Sentence) int {
	facts, ok := t.facts(later, earlier)
	if !ok {
		return lowest
	}
	score := t.number(Numbers - 1)
	for i, fact := range facts {
		score += t.number(Numbers-1-Facts+i) * int64(fact)
	}
	return int(score >> Fraction)
}

// lowest is below all scores.
const lowest = -1 << 20

// Facts is how many numbers the score of a change is made of.
const Facts = 4

// Facts are, of two clauses, how likely the later revokes something and how likely it stands,
// how rare the words are that they share, and how much of the earlier that is, from 0 to 256.
// It is false where nothing is shared.
func (t Table) Facts(later, earlier string) (facts [Facts]int, ok bool) {
	return t.facts(Read(later), Read(earlier))
}

func (t Table) facts(later, earlier *Sentence) (facts [Facts]int, ok bool) {
	var shared, all int
	for _, stem := range earlier.stems {
		rare := t.rare(stem)
		all += rare
		if slices.Contains(later.stems, stem) {
			shared += rare
		}
	}
	if shared == 0 {
		return facts, false
	}
	if !later.scored {
		later.scores, later.scored = t.scores(Clause{Text: later.text}, 0, Outputs), true
	}
	return [Facts]int{
		min(max(later.scores[Revokes], -500), 500), min(max(later.scores[Stands], -500), 500),
		min(shared, 1000), shared * 256 / all,
	}, true
}

// RareAt is where in a table the number is that says how rare a stem is.
func RareAt(stem uint64) int { return Size - Rare + int(stem%Rare) }

func (t Table) rare(stem uint64) int { return int(t[RareAt(stem)]) }

// Stems are the hashes of the beginnings of a text's words, each once: of up to five letters
// and without the last, since words change at their ends. Of Chinese and Japanese any two
// characters in a row are a word, of Korean the first two of a word.
func Stems(text string) []uint64 {
	var r reading
	r.read(text[:min(len(text), mostText)])
	var stems []uint64
	for i := 0; i < r.length; i++ {
		if !isWord(r.runes[i]) || i > 0 && isWord(r.runes[i-1]) && isIdeograph(r.runes[i]) == isIdeograph(r.runes[i-1]) && !isIdeograph(r.runes[i]) {
			continue
		}
		to := i
		for to < min(r.length, i+6) && isWord(r.runes[to]) && isIdeograph(r.runes[to]) == isIdeograph(r.runes[i]) {
			to++
		}
		most := min(max(3, to-i-1), 5)
		if isSyllable(r.runes[i]) {
			most = 2
		}
		h := uint64(1)
		for _, c := range r.runes[i:min(i+most, to)] {
			h = mix(h, uint64(c))
		}
		if to-i >= 2 && !slices.Contains(stems, h) {
			stems = append(stems, h)
		}
	}
	return stems
}

func isWord(c rune) bool { return unicode.IsLetter(c) || c == '0' }
