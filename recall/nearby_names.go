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
	// nameShare is the part of an answer that names beside the excerpts may take,
	// nameShareShort where the question is short: whoever asks with a few words wants
	// the text, whoever describes a whole step has forgotten what to ask for.
	nameShare, nameShareShort = 0.5, 0.25
	// nameHoldersPower is the power of the number of messages that hold a name, by which
	// it counts less: what stands everywhere need not be told.
	nameHoldersPower = 0.3
	// minNameLikeness is how much a name counts as like the question that shares nothing
	// with it, minNameNearness as surrounded by it where nearly nothing of it is near, of 1
	// each.
	minNameLikeness, minNameNearness = 0.1, 0.01
	// spokenNameWeight is what a name counts more that the user or the model itself has
	// written, and not a tool alone.
	spokenNameWeight = 2.2
	// idNameWeight is what an id counts more, and numberNameWeight what a number does: nobody
	// knows an id by heart, and most numbers are no names.
	idNameWeight, numberNameWeight = 7, 0.14
	// othersTokens is about what stands around the names of other messages.
	othersTokens = 30
)

// name is an identifier of the texts, as package ident finds them.
type name struct {
	text     string
	kind     ident.Type
	isSpoken bool
	tokens   int     // about
	rows     []int32 // that it stands in, each once
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
				this.rows = append(this.rows, row)
			}
			this.isSpoken = this.isSpoken || x.entries[i].Tool == ""
		})
	}
	return nil
}

// nearbyNames chooses the names that are most likely meant, of those that no passage
// shows and the question does not hold: whoever has forgotten a name knows it
// again in a list. near are, for each passage, those that stand in the same
// message, others those of messages that are not shown.
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
	for i := range c.x.names {
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
		candidates = append(candidates, candidate{int32(i), passage, score})
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

// estimateTokens is about how many tokens a text is, most often a few percent more than
// o200k counts.
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
