package summarize

import "strings"

// negations are words that turn what is said into its opposite.
var negations = []string{
	" never ", " not ", "n't ", "n’t ", " no ", " none ", " nor ", " neither ", " without ", " avoid", " dont ", " cannot ", " forbid", " nothing ",
	" nicht ", " kein ", " keine ", " keinen ", " nie ", " niemals ", " ohne ", " pas ", " jamais ", " sans ", " nunca ", " sin ", " не ", " нет ", " никогда ",
}

// wideNegations are those of scripts without spaces.
var wideNegations = []string{"不", "没", "勿", "禁止", "ない", "ません", "마세요", "지 않"}

// maxPolar is the longest source whose sentences are compared, in bytes.
const maxPolar = 64 << 10

func negated(s string) bool {
	low := " " + strings.Map(func(r rune) rune {
		if strings.ContainsRune(".,;:!?()[]\"`\n\t", r) {
			return ' '
		}
		return r
	}, strings.ToLower(s)) + " "
	for _, n := range negations {
		if strings.Contains(low, n) {
			return true
		}
	}
	for _, n := range wideNegations {
		if strings.Contains(low, n) {
			return true
		}
	}
	return false
}

// turnsAround reports whether an item says the opposite of its sources, as far
// as that shows: of the clauses in them the one that holds nearly all of its
// words is negated where the item is not, or the other way round.
func turnsAround(sources []*ground, item string) bool {
	mine := map[string]bool{}
	for w := range stems(item) {
		mine[w] = true
	}
	if len(mine) == 0 {
		return false
	}
	no := negated(item)
	same, other := 0, 0
	clause := func(s string) {
		found := 0
		for w := range stems(s) {
			if mine[w] {
				found++
			}
		}
		if found <= same && found <= other {
			return
		}
		if negated(s) == no {
			same = max(same, found)
		} else {
			other = max(other, found)
		}
	}
	for _, g := range sources {
		if len(g.text) > maxPolar {
			continue
		}
		sentences(g.text, func(p span) {
			sentence := g.text[p.from:p.to]
			if !strings.ContainsAny(sentence, ",;") {
				clause(sentence)
			} else {
				for part := range strings.FieldsFuncSeq(sentence, func(r rune) bool { return r == ',' || r == ';' }) {
					clause(part)
				}
			}
		})
	}
	return 10*other >= 9*len(mine) && same < other
}
