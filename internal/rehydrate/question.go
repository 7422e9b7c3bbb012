package rehydrate

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/scan"
)

// rareShare: a term counts as rare while at most one in five of a plan's artifacts holds
// it, or one of fewer.
const rareShare = 5

// description is what a plan says of an artifact, as terms.
type description struct {
	// hint are the terms of the rehydrate hint, all those of hint and summary. The value
	// tells names from plain words.
	hint, all map[string]bool
}

// matchQuestions finds the artifacts that questions are about, at most one for each.
//
// A sentence is a question when it ends with a question mark, or begins as one ("where
// is", "which file"). It matches an artifact when both share at least two rare terms: two
// of the rehydrate hint, or two of hint and summary of which one is a name; a file named
// in the hint is enough alone. A name is an identifier, a path or a number; a plain word
// has five letters or more and is not a common one. A term is rare when at most one of the
// plan's artifacts holds it, or one in five. The artifact that shares most is meant; a tie
// means none. Code blocks are no questions, and scripts without spaces between words have
// no terms.
func matchQuestions(questions []string, descriptions []description) []int {
	var found []int
	frequency := map[string]int{}
	for _, d := range descriptions {
		for term := range d.all {
			frequency[term]++
		}
	}
	for _, sentence := range questions {
		question := termsOf(sentence)
		best, most, tie := -1, 0, false
		for i, d := range descriptions {
			hinted, shared, names := 0, 0, 0
			for term, name := range question {
				described, held := d.all[term]
				if !held || frequency[term] > max(1, len(descriptions)/rareShare) {
					continue
				}
				shared++
				if name || described {
					names++
				}
				if _, in := d.hint[term]; in {
					hinted++
					if strings.ContainsAny(term, "./") {
						hinted++ // a file is enough: it names one thing alone
					}
				}
			}
			if hinted < 2 && (shared < 2 || names == 0) {
				continue
			}
			switch {
			case shared > most:
				best, most, tie = i, shared, false
			case shared == most:
				tie = true
			}
		}
		if best >= 0 && !tie && !slices.Contains(found, best) {
			found = append(found, best)
		}
	}
	return found
}

// questions are the sentences of a text that are questions.
func questions(text string) []string {
	return slices.DeleteFunc(sentences(text), func(s string) bool { return !isQuestion(s) })
}

// sentences splits a text at line ends and after marks that end a sentence and are
// followed by a space. Code blocks are left out.
func sentences(text string) []string {
	var out []string
	for line := range scan.Prose(text) {
		start := 0
		for i, r := range line {
			end := i + utf8.RuneLen(r)
			if !strings.ContainsRune(".!?？؟。", r) || end < len(line) && line[end] != ' ' {
				continue
			}
			out = append(out, strings.TrimSpace(line[start:end]))
			start = end
		}
		if rest := strings.TrimSpace(line[start:]); rest != "" {
			out = append(out, rest)
		}
	}
	return out
}

var (
	questionWords = scan.WordSet("what which where when who whose why how")
	auxiliary     = scan.WordSet("is are was were did does do has have had can could would should will")
	afterWhich    = scan.WordSet("file files function method line lines test tests value values error errors version much many")
)

// isQuestion applies the rule of matchQuestions to one sentence.
func isQuestion(sentence string) bool {
	trimmed := strings.TrimRight(sentence, " \t\"'`*_)]»”’")
	if r, _ := utf8.DecodeLastRuneInString(trimmed); r == '?' || r == '？' || r == '؟' {
		return true
	}
	first, rest, _ := strings.Cut(strings.ToLower(sentence), " ")
	second, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	return questionWords[first] && (auxiliary[second] || afterWhich[second])
}

// The bounds of a term in bytes.
const (
	minName, minWord, maxTerm = 3, 5, 96
)

// termsOf gives the terms of a text in lower case, and for each whether it is a name. The
// last element of a path is a term too.
func termsOf(text string) map[string]bool {
	terms := map[string]bool{}
	add := func(token string) {
		token = strings.Trim(token, "./-\\")
		lower := strings.ToLower(token)
		switch {
		case len(token) > maxTerm || commonWords[lower]:
		case isName(token):
			if len(token) >= minName {
				terms[lower] = true
			}
		case len(token) >= minWord:
			if _, known := terms[lower]; !known {
				terms[lower] = false
			}
		}
	}
	for _, token := range strings.FieldsFunc(text, func(r rune) bool {
		return !inWord(r) && !strings.ContainsRune("./-\\", r)
	}) {
		add(token)
		if i := strings.LastIndexAny(token, `/\`); i >= 0 {
			add(token[i+1:])
		}
	}
	return terms
}

// isName reports whether a token looks like a name rather than a word: digits, joined
// parts, or capitals after the first letter.
func isName(token string) bool {
	_, first := utf8.DecodeRuneInString(token)
	return strings.ContainsAny(token, `_./\`) || strings.ContainsFunc(token, unicode.IsDigit) || strings.ContainsFunc(token[first:], unicode.IsUpper)
}

// commonWords say nothing about which content is meant: words of every question, and of
// all work on code. Short ones need not be listed.
var commonWords = scan.WordSet(`
about above after again against already always another answer anything around asked asking because been before being below
better between build built calls change changed changes check could check checked command complete content contents correct
could create created didn doesn doing done during either enough error errors every everything exactly expected failed failing
fails failure false files final find first fixed following found full function functions further given going have having
hello instead issue issues itself known later least lines maybe means message messages method might missing needed needs never
nothing number numbers order other others output outputs passed passes perhaps place please possible previous problem problems
project question read really reason report request result results return returned returns right running second seems
several shall should show shown shows since single small solution someone something start started still string sure
tests thank thanks their them then there these they thing things think third this those though through times today together
token tokens tool tools total toward true trying under understand until update updated using usage user value values version
wanted wants ways well were what when where whether which while whole whose will with within without work worked working
works would write writing written wrong your yours
n/a e.g i.e etc art v1.0`)
