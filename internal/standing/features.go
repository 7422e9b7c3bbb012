package standing

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Groups of features. Each has its own part of the table and its own scale, and what it adds
// to a score is divided by the square root of how many features of it a clause has.
const (
	words      = iota // words of the clause, pairs and triples of them
	characters        // 2 to 6 characters of the clause in a row, also across words
	meanings          // classes of words that mean the same in all languages, and pairs of them
	structure         // length, marks, place, script
	question          // the words of what the assistant had said, as in words
	answer            // how a short answer and the question go together
	Groups
)

// parts are where the weights of each group begin, and as a power of two how many there are.
var parts = [Groups]struct{ from, bits uint32 }{
	words:      {0, 17},
	characters: {1 << 17, 17},
	question:   {1 << 18, 15},
	meanings:   {9 << 15, 15},
	answer:     {10 << 15, 14},
	structure:  {21 << 14, 14},
}

// Weights is how many weights an output of the table has.
const Weights = 22 << 14

// Limits on what is read.
const (
	mostText   = 1024 // bytes of a clause
	mostBefore = 256  // bytes of what was said before it
	mostWords  = 256
	// shortAnswer is the number of words up to which a clause is taken together with what it
	// answers.
	shortAnswer = 8
)

// Features calls add for each feature of a clause, with its group and the place of its weight
// in the table. Training and scoring share it. A text without letters and digits has no
// features.
func (c Clause) Features(add func(group int, weight uint32)) {
	var here, asked reading
	here.read(c.Text[:min(len(c.Text), mostText)])
	if here.n == here.marks {
		return
	}
	asked.read(c.Before[max(0, len(c.Before)-mostBefore):])
	here.wordsInRow(words, add)
	here.charactersInRow(add)
	end := ending(c.Text)
	here.meanings(end, add)
	kind := c.structure(&here, &asked, end, add)
	if asked.n == 0 {
		return
	}
	asked.wordsInRow(question, add)
	if here.n > shortAnswer {
		return
	}
	previous := edge
	for _, asked := range asked.words[:asked.n] {
		add(answer, place(answer, mix(mix(1, few(here.n)), asked)))
		add(answer, place(answer, mix(mix(mix(2, few(here.n)), previous), asked)))
		for _, word := range here.words[:here.n] {
			add(answer, place(answer, mix(mix(3, word), asked)))
		}
		previous = asked
	}
	for _, word := range here.words[:here.n] {
		add(answer, place(answer, mix(mix(4, word), kind)))
	}
}

// wordsInRow adds one to three words in a row, and the first and third of three. The ends of
// the text count as words.
func (r *reading) wordsInRow(group int, add func(int, uint32)) {
	first, second := edge, edge
	for i := 0; i <= r.n; i++ {
		third := edge
		if i < r.n {
			third = r.words[i]
			add(group, place(group, mix(1, third)))
		}
		pair := mix(mix(2, second), third)
		add(group, place(group, pair))
		if i > 0 {
			add(group, place(group, mix(pair, first)))
			add(group, place(group, mix(mix(3, first), third)))
		}
		first, second = second, third
	}
}

func (r *reading) charactersInRow(add func(int, uint32)) {
	for i := range r.length {
		h := mix(1, uint64(r.runes[i]))
		for _, c := range r.runes[i+1 : min(i+6, r.length)] {
			h = mix(h, uint64(c))
			add(characters, place(characters, h))
		}
	}
}

// meanings adds the classes of words in their order, with what they stand beside, with the
// mark that the clause ends with, and with its length.
func (r *reading) meanings(end uint64, add func(int, uint32)) {
	var found [mostWords]uint64
	n, previous := 0, edge
	put := func(kind, a, b uint64) { add(meanings, place(meanings, mix(mix(kind, a), b))) }
	for class := range r.classes {
		if class == previous || n == len(found) {
			continue
		}
		if n == 0 {
			put(1, class, 0)
		}
		put(2, class, 0)
		put(3, class, end)
		put(4, class, few(r.n))
		put(5, previous, class)
		for _, other := range found[max(0, n-7):n] {
			put(6, min(class, other), max(class, other))
		}
		found[n], previous = class, class
		n++
	}
	put(5, previous, edge)
	put(7, uint64(n), 0)
}

// structure adds what words do not say, and returns the kind of what was said before.
func (c Clause) structure(here, asked *reading, end uint64, add func(int, uint32)) (kind uint64) {
	length := few(here.n)
	if asked.n > 0 {
		kind = 1 + ending(c.Before)<<4 + few(asked.n)
	}
	at := 0 // alone, first, between, last
	switch {
	case c.Count < 2:
	case c.Index == 0:
		at = 1
	case c.Index < c.Count-1:
		at = 2
	default:
		at = 3
	}
	capital := 0
	if first, _ := utf8.DecodeRuneInString(c.Text); unicode.IsUpper(first) {
		capital = 1
	}
	script := uint64(here.script)
	for of, value := range [...]uint64{
		length, end, length<<4 | end, uint64(at), script, script<<4 | end, script<<4 | length,
		uint64(min(here.code, 4)), uint64(4 * here.code / here.n), uint64(min(here.numbers, 3)),
		uint64(min(here.commas, 4)), uint64(min(here.quotes, 3)), uint64(capital), kind, kind<<4 | length,
	} {
		add(structure, place(structure, mix(mix(1, uint64(of)), value)))
	}
	return kind
}

// few puts a count of words into one of a few bins, the wider the more there are.
func few(n int) uint64 { return uint64(bits.Len(uint(n * n))) }

// ending is the mark that a text ends with, as a number; 0 is another character.
func ending(s string) uint64 {
	c, _ := utf8.DecodeLastRuneInString(strings.TrimRightFunc(s, unicode.IsSpace))
	for i, marks := range [...]string{"?？؟", "!！", ".。", ":：", "…", ")"} {
		if strings.ContainsRune(marks, c) {
			return uint64(i + 1)
		}
	}
	return 0
}

// edge is the word before the first and after the last.
const edge uint64 = 0x27d4eb2f165667c5

// mix takes a value into a hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9fb21c651e98df25
	return h ^ h>>32
}

// place is where the weight of a feature is in the table.
func place(group int, h uint64) uint32 {
	p := parts[group]
	return p.from + uint32(h*0x9e3779b97f4a7c15>>(64-p.bits))
}
