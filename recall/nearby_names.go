package recall

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
)

const (
	// nameShare is the share of an answer for names beside the excerpts, nameShareShort
	// that for short questions: a few words ask for text, while a description of a whole
	// step means that its author has forgotten the names.
	nameShare, nameShareShort = 0.5, 0.15
	// nameHoldersPower: a name counts less by this power of the number of messages that
	// have it. What is everywhere need not be listed.
	nameHoldersPower = 0.3
	// maxNameRows is how many rows may have a name that is listed.
	maxNameRows = 2000
	// minNameLikeness is the likeness, of 1, of a name that shares nothing with the question,
	// minNameNearness the nearness of one with nothing of the question around it.
	minNameLikeness, minNameNearness = 0.1, 0.01
	// spokenNameWeight is how much more a name counts that the user or the model has
	// written, and not only a tool.
	spokenNameWeight = 2.2
	// Ids count more, because nobody knows them by heart, and numbers less, because most of
	// them are no names.
	idNameWeight, numberNameWeight = 7, 0.14
	// othersTokens is about the size of the text around the names of other messages.
	othersTokens = 30
)

// name is an identifier of the texts, as package ident finds them.
type name struct {
	text     string
	kind     ident.Type
	isSpoken bool
	tokens   int     // about
	rows     []int32 // that contain it
	// Its words are Index.nameTerms[from:to].
	from, to int32
}

// addNames finds the names of all views.
func (x *Index) addNames(ctx context.Context) error {
	at := map[string]int{}
	var sc scanner
	for i, text := range x.views {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := x.rowStarts[i]
		x.nameStarts = append(x.nameStarts, int32(len(x.namesOf)))
		ident.Extract(text, func(id ident.Ident) {
			for int(row)+1 < len(x.rows) && x.rows[row+1].entry == int32(i) && int(x.rows[row+1].from) <= id.At {
				row++
			}
			n, known := at[id.Norm]
			if !known {
				n = len(x.names)
				at[id.Norm] = n
				from := int32(len(x.nameTerms))
				sc.scan(id.Surface, func(token []byte, _ grain, _, _ int) {
					if term, known := x.terms[string(token)]; known {
						x.nameTerms = append(x.nameTerms, term)
					}
				})
				x.names = append(x.names, name{
					text: id.Surface, kind: id.Type, tokens: estimateTokens(id.Surface) + 1, from: from, to: int32(len(x.nameTerms)),
				})
			}
			this := &x.names[n]
			if k := len(this.rows); k == 0 || this.rows[k-1] != row {
				if k == 0 || x.rows[this.rows[k-1]].entry != int32(i) {
					x.namesOf = append(x.namesOf, int32(n))
				}
				this.rows = append(this.rows, row)
			}
			this.isSpoken = this.isSpoken || x.entries[i].Tool == ""
		})
	}
	return nil
}

// nearbyNames chooses the names that are most likely meant, among those that neither a
// passage nor the question contains: whoever has forgotten a name recognizes it in a list.
// near has, for each passage, names of the same message; others are names of messages that
// are not shown.
func (c *passageChooser) nearbyNames(question string, spans []span, terms []term, room int) (near [][]string, others []string) {
	type candidate struct {
		name, passage int32 // the first passage of a message that holds it, or -1
		score         float64
	}
	asked, most := make([]float64, len(c.x.postings)), 0.0
	for k, t := range terms {
		asked[t.id] = c.termWorth[k]
		most = max(most, c.termWorth[k])
	}
	// The number behind the first passage of each entry.
	passages := make([]int32, len(c.x.entries))
	densest := 0.0
	for i, dense := range c.density {
		densest = max(densest, dense*c.entryWeight[c.x.rows[i].entry])
	}
	for n, s := range slices.Backward(spans) {
		passages[c.x.rows[s.from].entry] = int32(n) + 1
	}
	if densest == 0 || most == 0 {
		return make([][]string, len(spans)), nil
	}
	var candidates []candidate
	for _, i := range c.namesFound() {
		n := &c.x.names[i]
		around, holders, last, passage := 0.0, 0, int32(-1), int32(-1)
		for _, r := range n.rows {
			if c.usedRows[r] {
				around = 0
				break
			}
			e := c.x.rows[r].entry
			around = max(around, c.density[r]*c.entryWeight[e])
			if e == last || c.entryWeight[e] == 0 {
				continue
			}
			last = e
			holders++
			if passage < 0 {
				passage = passages[e] - 1
			}
		}
		if around == 0 {
			continue
		}
		alike := 0.0
		for _, term := range c.x.nameTerms[n.from:n.to] {
			alike += asked[term]
		}
		around = around/densest + minNameNearness
		score := around * math.Sqrt(around) * math.Sqrt(alike/most+minNameLikeness) / float64(n.tokens)
		if holders > 1 {
			score /= math.Pow(float64(holders), nameHoldersPower)
		}
		switch n.kind {
		case ident.ID:
			score *= idNameWeight
		case ident.Number, ident.Version:
			score *= numberNameWeight
		}
		if n.isSpoken {
			score *= spokenNameWeight
		}
		candidates = append(candidates, candidate{i, passage, score})
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.name, b.name))
	})
	near = make([][]string, len(spans))
	for _, is := range candidates {
		if room <= 1 {
			break
		}
		n := &c.x.names[is.name]
		cost := n.tokens
		if is.passage < 0 && others == nil {
			cost += othersTokens
		}
		if cost > room || strings.Contains(question, n.text) {
			continue
		}
		room -= cost
		text := n.text
		if n.kind == ident.Quoted {
			text = `"` + text + `"`
			room--
		}
		if is.passage >= 0 {
			near[is.passage] = append(near[is.passage], text)
		} else {
			others = append(others, text)
		}
	}
	return near, others
}

// namesFound lists the names in the entries that may be shown, without those that are everywhere.
func (c *passageChooser) namesFound() []int32 {
	var found []int32
	seen := make([]bool, len(c.x.names))
	for e, weight := range c.entryWeight {
		if weight == 0 {
			continue
		}
		end := len(c.x.namesOf)
		if e+1 < len(c.x.nameStarts) {
			end = int(c.x.nameStarts[e+1])
		}
		for _, n := range c.x.namesOf[c.x.nameStarts[e]:end] {
			if !seen[n] && len(c.x.names[n].rows) <= maxNameRows {
				found = append(found, n)
			}
			seen[n] = true
		}
	}
	return found
}

// estimateTokens estimates the tokens of a text, usually a few percent above o200k.
func estimateTokens(s string) int {
	n := 0
	run := func(i int, in func(byte) bool) int {
		for i++; i < len(s) && in(s[i]); i++ {
		}
		return i
	}
	for i := 0; i < len(s); {
		start := i
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			i = run(i, func(c byte) bool { return 'a' <= c && c <= 'z' })
			n += 1 + (i-start-1)/9
		case '0' <= c && c <= '9':
			i = run(i, func(c byte) bool { return '0' <= c && c <= '9' })
			n += (i - start + 2) / 3
		case c == ' ':
			i = run(i, func(c byte) bool { return c == ' ' })
			if i-start > 1 {
				n++
			}
		case c < 0x80:
			i = run(i, func(c byte) bool {
				return c < 0x80 && c != ' ' && (c < '0' || '9' < c) && (c|0x20 < 'a' || 'z' < c|0x20)
			})
			n += (i - start + 1) / 2
		default:
			i = run(i, func(c byte) bool { return 0x80 <= c && c < 0xC0 })
			n++
		}
	}
	return n
}
