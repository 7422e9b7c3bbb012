package recall

import (
	"cmp"
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
	// maxNamed is in how many of the best messages names are looked for, maxNamedBytes in how much of
	// their text.
	maxNamed, maxNamedBytes = 200, 512 << 10
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
	alike    float64 // what the words of the question in it are worth
}

// namesIn finds the names in the best of the entries, which are in order.
func (c *passageChooser) namesIn(order []int, asked map[string]float64) []name {
	bytes, looked := 0, 0
	for ; looked < min(len(order), maxNamed) && bytes < maxNamedBytes; looked++ {
		bytes += len(c.x.views[order[looked]])
	}
	known := map[string]float64{}
	alike := func(token string) float64 {
		worth, is := known[token]
		if !is {
			worth = asked[stem(token)]
			known[token] = worth
		}
		return worth
	}
	at := map[string]int{}
	var names []name
	for _, i := range slices.Sorted(slices.Values(order[:looked])) {
		row := c.rowStarts[i]
		ident.Extract(c.x.views[i], func(id ident.Ident) {
			for int(row)+1 < len(c.rows) && c.rows[row+1].entry == int32(i) && int(c.rows[row+1].from) <= id.At {
				row++
			}
			n, known := at[id.Norm]
			if !known {
				n = len(names)
				at[id.Norm] = n
				found := name{text: id.Surface, kind: id.Type, tokens: estimateTokens(id.Surface) + 1}
				eachToken(id.Surface, func(token string, _ grain, _, _ int) {
					found.alike += alike(token)
				})
				names = append(names, found)
			}
			this := &names[n]
			if k := len(this.rows); k == 0 || this.rows[k-1] != row {
				this.rows = append(this.rows, row)
			}
			this.isSpoken = this.isSpoken || c.x.entries[i].Tool == ""
		})
	}
	return names
}

// nearbyNames chooses the names that are most likely meant, among those that neither a
// passage nor the question contains: whoever has forgotten a name recognizes it in a list.
// order has the entries that may be shown, the best first. near has, for each passage, names
// of the same message; others are names of messages that are not shown.
func (c *passageChooser) nearbyNames(question string, order []int, spans []span, terms []term, room int) (near [][]string, others []string) {
	type candidate struct {
		name, passage int // the first passage of a message that holds it, or -1
		score         float64
	}
	asked, most := map[string]float64{}, 0.0 // by root
	for k, t := range terms {
		asked[t.root] = c.termWorth[k]
		most = max(most, c.termWorth[k])
	}
	// The number behind the first passage of each entry.
	passages := map[int32]int{}
	densest := 0.0
	for i, dense := range c.density {
		densest = max(densest, dense*c.rows[i].weight)
	}
	for n, s := range slices.Backward(spans) {
		passages[c.rows[s.from].entry] = n + 1
	}
	if densest == 0 || most == 0 || room <= 1 {
		return make([][]string, len(spans)), nil
	}
	var candidates []candidate
	names := c.namesIn(order, asked)
	for i := range names {
		n := &names[i]
		around, holders, last, passage := 0.0, 0, int32(-1), -1
		for _, r := range n.rows {
			if c.usedRows[r] {
				around = 0
				break
			}
			e := c.rows[r].entry
			around = max(around, c.density[r]*c.rows[r].weight)
			if e == last {
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
		around = around/densest + minNameNearness
		score := around * math.Sqrt(around) * math.Sqrt(n.alike/most+minNameLikeness) / float64(n.tokens)
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
		n := &names[is.name]
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

// estimateTokens estimates the tokens of a text: code and English have three to four bytes for each.
func estimateTokens(s string) int { return (2*len(s) + 6) / 7 }
