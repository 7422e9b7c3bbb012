package standing

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// shortest is how many letters and digits a clause has at least: what is shorter stays with
// the clause before it.
const shortest = 8

// Clause is a part of a message that is scored by itself.
type Clause struct {
	// Span is its place in the message, in bytes.
	scan.Span
	// Text is a sentence or a part of one, in the person's words. Its first 1,024 bytes are
	// scored, up to 256 words and marks.
	Text string
	// Before is what the assistant had said just before, where the clause may answer it; its
	// last 256 bytes are scored.
	Before string
	// Index of Count is its place among the clauses of its message, from 0. A Count of 0 or
	// 1 is a clause alone.
	Index, Count int
}

// mostClauses bounds the clauses of a message: nobody writes so many, and what a person wrote stands before or
// behind what was pasted.
const mostClauses = 1 << 16

// Clauses returns the clauses of a message in order: its sentences, outside of fenced code and
// of quoted lines (">"), and the parts of a sentence between semicolons. Unlike a sentence of
// prose, one in a chat may begin in lower case. What stands before a colon or a dash is the
// scope of what follows, so they end no clause. Before is what the assistant had said just
// before the message, or empty: the first clause answers it. A message without letters and
// digits has no clauses, and of one with very many those in the middle are left out.
func Clauses(message, before string) []Clause {
	var all []Clause
	fenced := false
	for at := 0; at < len(message); {
		line, next := scan.NextLine(message, at)
		at = next
		p := scan.Trim(message, line)
		text := message[p.From:p.To]
		switch {
		case strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~"):
			fenced = !fenced
		case !fenced && text != "" && text[0] != '>':
			if all = clausesOfLine(all, message, p); len(all) > mostClauses {
				all = slices.Delete(all, mostClauses/4, mostClauses*3/4)
			}
		}
	}
	for i := range all {
		all[i].Index, all[i].Count = i, len(all)
	}
	if len(all) > 0 {
		all[0].Before = before
	}
	return all
}

func clausesOfLine(all []Clause, s string, line scan.Span) []Clause {
	from, letters, inWord := line.From, 0, 0
	for i := line.From; i < line.To; {
		c, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			letters++
			inWord++
			if isIdeograph(c) {
				letters++
			}
			continue
		}
		if letters >= shortest && ends(c, inWord, s[i:line.To]) {
			p := scan.Trim(s, scan.Span{From: from, To: i})
			all = append(all, Clause{Span: p, Text: s[p.From:p.To]})
			from, letters = i, 0
		}
		if c == ' ' { // "nightly.go" and "LIN-1" are one word
			inWord = 0
		}
	}
	if letters > 0 {
		p := scan.Trim(s, scan.Span{From: from, To: line.To})
		all = append(all, Clause{Span: p, Text: s[p.From:p.To]})
	}
	return all
}

// ends reports whether a mark ends a clause: word is how long the word before it is, rest
// what follows.
func ends(c rune, word int, rest string) bool {
	switch c {
	case '。', '！', '？', '；':
		return true
	case '!', '?', ';', '…':
		return rest == "" || rest[0] == ' '
	case '.': // a short word before it is an abbreviation, and a number may be one of a list
		return word > 2 && strings.HasPrefix(rest, " ")
	}
	return false
}
