package recall

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
)

// row is a line of the view of an entry, or a part of a long line. Excerpts are made of rows.
type row struct {
	entry    int32
	from, to int32   // in the view
	weight   float64 // of the passages of its entry
}

// longestRow is the length in bytes beyond which a line is cut into several rows.
const longestRow = 240

// eachRow cuts a text into rows.
func eachRow(text string, put func(from, to int)) {
	for from := 0; ; {
		end := len(text)
		if n := strings.IndexByte(text[from:], '\n'); n >= 0 {
			end = from + n
		}
		for end-from > longestRow {
			at := from + clip.Boundary(text[from:end], longestRow)
			if space := strings.LastIndexAny(text[from:at], " ,;\t"); space > longestRow/2 {
				at = from + space + 1
			}
			if at == from { // one character of many parts
				for at = from + longestRow; !utf8.RuneStart(text[at]); at-- {
				}
			}
			put(from, at)
			from = at
		}
		put(from, end)
		if end == len(text) {
			return
		}
		from = end + 1
	}
}

// These values were tuned on the dev half of the public transcripts (lab/README.md).
const (
	// neighborFade is the factor by which rows count less with each step from the middle of
	// a passage, and neighborReach how many rows on each side count.
	neighborFade, neighborReach = 0.7, 6
	// repeatedWorth is the factor for terms that a passage already shows.
	repeatedWorth = 0.2
	// rarityPower is the power of the rarity of a term in a long question, which may contain
	// a file or a call: there the few terms of hardly any rows say where to look.
	rarityPower = 2.5
	// minEntryWeight is the weight of a passage in an entry that hardly matches as a whole.
	// Results of tools count more than what was said about them by resultWeight.
	minEntryWeight, resultWeight = 0.15, 2
	// seedBytes is the least size of a passage before the next one is chosen; of the best message of
	// a short question it is three times that, of the next one twice: they most likely answer it.
	seedBytes = 300
	// leastCopy is the least size of lines that are a copy, in bytes: shorter ones stand in
	// many places.
	leastCopy = 60
	// maxPlaces is how many places are examined closely.
	maxPlaces = 400
	// A question of more than fewTerms terms is long. Of a long question, terms in more than
	// commonRowShare of the rows are ignored.
	commonRowShare, fewTerms = 0.1, 12
	// hitTokens is about the size of a hit without call and excerpt, furtherExcerptTokens the
	// text around each further excerpt of the same message.
	hitTokens, furtherExcerptTokens = 45, 5
)

// passageChooser chooses the passages that are shown for a question: those that match most
// of it, each for what the passages before it lack.
type passageChooser struct {
	x *Index
	// rows are those of the entries that may be shown; rowStarts has the first of each.
	rows      []row
	rowStarts []int32
	// The terms of the question in a row are rowTerms[rowTermStarts[row]:rowTermStarts[row+1]].
	rowTerms       []int32
	rowTermStarts  []int32
	termWorth      []float64 // of each term
	remainingWorth []float64 // of each term, less what is already shown
	density        []float64 // by row: worth of the terms in it and near it
	usedRows       []bool
	passagesOf     map[int32]int // number of passages of each entry
	lastCounted    []int         // by term: the number of the count that included it last, so that none has to be cleared
	counting       int
	tokensLeft     int
	seed           int            // bytes that a passage begins with
	spans          []span         // the chosen passages
	matches        []string       // the lines around the match of each
	shown          map[string]int // the passage that shows these lines
}

// span is a passage: rows of one entry.
type span struct {
	from, to int // to is the last
	score    float64
	copies   []int32 // other entries that hold the lines around its match
}

// newChooser weighs the rows for a question. A phrase is a term that is worth more than all
// words together.
func (x *Index) newChooser(shown []int, weight func(entry int) float64, terms []term, phrases []string, room int) *passageChooser {
	c := &passageChooser{
		x: x, tokensLeft: room, seed: seedBytes, rows: make([]row, 0, 2*len(shown)), rowStarts: make([]int32, len(x.entries)),
		termWorth: make([]float64, len(terms)), passagesOf: map[int32]int{}, shown: map[string]int{},
	}
	sorted := slices.Sorted(slices.Values(shown))
	for _, i := range sorted {
		c.rowStarts[i] = int32(len(c.rows))
		worth := weight(i)
		eachRow(x.views[i], func(from, to int) { c.rows = append(c.rows, row{int32(i), int32(from), int32(to), worth}) })
	}
	n := len(c.rows)
	c.rowTermStarts, c.density, c.usedRows = make([]int32, n+1), make([]float64, n), make([]bool, n)
	holders := make([][]int32, len(terms), len(terms)+len(phrases))
	all := 0.0
	for k, t := range terms {
		rows, count := c.rowsOf(t.ids, len(terms) <= fewTerms)
		if count == 0 || len(terms) > fewTerms && float64(count) > commonRowShare*float64(x.rows) && count > 20 {
			continue
		}
		holders[k] = rows
		rarity := idf(x.rows, count)
		if len(terms) > fewTerms {
			rarity = math.Pow(rarity, rarityPower)
		}
		c.termWorth[k] = t.share * rarity
		all += c.termWorth[k]
	}
	for _, phrase := range phrases {
		var rows []int32
		sought := newFolded(phrase)
		for _, i := range sorted {
			if at := sought.index(x.views[i]); at >= 0 {
				rows = append(rows, int32(c.rowAt(i, at)))
			}
		}
		holders = append(holders, rows)
		c.termWorth = append(c.termWorth, 2*all+1)
	}
	for _, rows := range holders {
		for _, r := range rows {
			c.rowTermStarts[r+1]++
		}
	}
	for i := range n {
		c.rowTermStarts[i+1] += c.rowTermStarts[i]
	}
	c.rowTerms = make([]int32, c.rowTermStarts[n])
	next := slices.Clone(c.rowTermStarts)
	for k, rows := range holders {
		for _, r := range rows {
			c.rowTerms[next[r]] = int32(k)
			next[r]++
			c.density[r] += c.termWorth[k]
		}
	}
	c.remainingWorth, c.lastCounted = slices.Clone(c.termWorth), make([]int, len(c.termWorth))
	c.spreadDensity()
	return c
}

// rowsOf lists the rows that may be shown and have a term, and counts those of all entries. With heads an
// entry that has the term only in its call has it in its first row: whoever names a file wants what was
// read from it.
func (c *passageChooser) rowsOf(ids []int32, heads bool) (rows []int32, count int) {
	for n, id := range ids {
		if id < 0 {
			continue
		}
		s, i, isShown := c.x.segments[n], -1, false
		var first, last int32 // the first row of entry i among c.rows, and the last one there with the term, from the first of s
		for _, place := range s.places[s.starts[id]:s.starts[id+1]] {
			if e := s.first + int(s.entryAt(place)); e != i {
				i, first, last = e, c.rowStarts[e], -1
				isShown = int(first) < len(c.rows) && int(c.rows[first].entry) == i
			}
			if place <= last && !(last < 0 && heads && isShown) {
				continue // again, or in the call, whose places come last and are negative
			}
			if count++; isShown {
				rows = append(rows, first+max(0, place-c.x.rowStarts[i]))
			}
			last = max(0, place)
		}
	}
	return rows, count
}

// rowAt returns the row of byte `at` in the view of an entry.
func (c *passageChooser) rowAt(entry, at int) int {
	rows := c.rows[c.rowStarts[entry]:]
	behind := func(n int) bool { return int(rows[n].entry) > entry || int(rows[n].from) > at }
	return int(c.rowStarts[entry]) + max(0, sort.Search(len(rows), behind)-1)
}

// text returns the text of a passage.
func (c *passageChooser) text(s span) string {
	return c.x.views[c.rows[s.from].entry][c.rows[s.from].from:c.rows[s.to].to]
}

// tokens is about the size of a row.
func (c *passageChooser) tokens(i int) int {
	r := c.rows[i]
	return estimateTokens(c.x.views[r.entry][r.from:r.to]) + 1
}

// spreadDensity lets the worth of a row count for its neighbors.
func (c *passageChooser) spreadDensity() {
	above := make([]float64, len(c.density))
	sum, last := 0.0, int32(-1)
	for i := range c.density {
		if e := c.rows[i].entry; e != last {
			sum, last = 0, e
		}
		above[i] = sum
		sum = (sum + c.density[i]) * neighborFade
	}
	sum, last = 0, -1
	for i := len(c.density) - 1; i >= 0; i-- {
		if e := c.rows[i].entry; e != last {
			sum, last = 0, e
		}
		own := c.density[i]
		c.density[i] += above[i] + sum
		sum = (sum + own) * neighborFade
	}
}

// sameEntry reports whether row i exists and belongs to the entry of another row.
func (c *passageChooser) sameEntry(i, other int) bool {
	return i >= 0 && i < len(c.rows) && c.rows[i].entry == c.rows[other].entry
}

// uncountedWorth adds up the worth of the terms in a row that were not counted yet.
func (c *passageChooser) uncountedWorth(i int) float64 {
	sum := 0.0
	for _, k := range c.rowTerms[c.rowTermStarts[i]:c.rowTermStarts[i+1]] {
		if c.lastCounted[k] != c.counting {
			c.lastCounted[k] = c.counting
			sum += c.remainingWorth[k]
		}
	}
	return sum
}

// passageValue is what a passage around a row would add to the chosen ones.
func (c *passageChooser) passageValue(mid int) float64 {
	if c.usedRows[mid] {
		return 0
	}
	c.counting++
	sum := c.uncountedWorth(mid)
	weight := 1.0
	for n := 1; n <= neighborReach; n++ {
		weight *= neighborFade
		for _, i := range [2]int{mid + n, mid - n} {
			if c.sameEntry(i, mid) && !c.usedRows[i] {
				sum += weight * c.uncountedWorth(i)
			}
		}
	}
	return sum * c.rows[mid].weight
}

// chooseBest chooses the best passage of each of the first entries in order.
func (c *passageChooser) chooseBest(order []int, scores []float64, limit int) {
	defer func() { c.seed = seedBytes }()
	for _, i := range order {
		if len(c.spans) >= limit || c.tokensLeft <= 0 && len(c.spans) > 0 {
			return
		}
		c.seed = seedBytes * max(1, 3-len(c.spans))
		c.take(c.bestRow(int(c.rowStarts[i])), scores[i])
	}
}

// bestRow is the row of an entry around which most of the question stands, each term counted once:
// lines that repeat one of them tell less than the one that has all.
func (c *passageChooser) bestRow(first int) int {
	best, most := first, 0.0
	for row := first; c.sameEntry(row, first); row++ {
		if c.rowTermStarts[row] == c.rowTermStarts[row+1] {
			continue
		}
		if value := c.passageValue(row); value > most || value == most && c.density[row] > c.density[best] {
			best, most = row, value
		}
	}
	return best
}

// choose chooses passages until there are limit, the best first, and between equals those
// of the entries that come first in order.
func (c *passageChooser) choose(limit int, order []int) {
	type place struct {
		row, rank int
		value     float64 // no less than it is now
	}
	var places []place
	for rank, i := range order {
		for row := int(c.rowStarts[i]); row < len(c.rows) && c.rows[row].entry == int32(i); row++ {
			if c.density[row] > 0 {
				places = append(places, place{row, rank, c.density[row] * c.rows[row].weight})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.rank, b.rank), cmp.Compare(a.row, b.row))
	})
	places = places[:min(len(places), max(maxPlaces, 4*limit))]
	for i := range places {
		places[i].value = c.passageValue(places[i].row)
	}
	for len(c.spans) < limit && c.tokensLeft > 0 && len(places) > 0 {
		// Values only fall, so those below the best need not be computed again.
		best := -1
		for i := range places {
			if best >= 0 && places[i].value <= places[best].value {
				continue
			}
			places[i].value = c.passageValue(places[i].row)
			if places[i].value > 0 && (best < 0 || places[i].value > places[best].value) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		c.take(places[best].row, places[best].value)
	}
}

// take begins a passage around a row, with at most the score of the one before it, unless a passage
// shows these lines already.
func (c *passageChooser) take(mid int, score float64) {
	around := c.linesAround(mid)
	if n, again := c.shown[around]; again && len(around) >= leastCopy {
		c.usedRows[mid] = true
		s := &c.spans[n]
		if e := c.rows[mid].entry; around == c.matches[n] && e != c.rows[s.from].entry && !slices.Contains(s.copies, e) {
			s.copies = append(s.copies, e)
		}
		return
	}
	if n := len(c.spans); n > 0 {
		score = min(score, c.spans[n-1].score)
	}
	s := c.startPassage(mid, score)
	for i := s.from; i <= s.to; i++ {
		c.shown[c.linesAround(i)] = len(c.spans)
	}
	c.spans, c.matches = append(c.spans, s), append(c.matches, around)
}

// linesAround are a row and its neighbors, without indents and line numbers: a file that was read twice, or a
// copy of it, has them again.
func (c *passageChooser) linesAround(mid int) string {
	var b strings.Builder
	for i := mid - 1; i <= mid+1; i++ {
		if c.sameEntry(i, mid) {
			r := c.rows[i]
			line := strings.TrimLeft(strings.TrimSpace(c.x.views[r.entry][r.from:r.to]), "0123456789")
			b.WriteString(strings.TrimSpace(strings.TrimPrefix(line, "→")))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// startPassage begins a passage around a row.
func (c *passageChooser) startPassage(mid int, score float64) span {
	s := span{from: mid, to: mid, score: score}
	c.useRow(mid)
	c.tokensLeft -= c.frameTokens(int(c.rows[mid].entry))
	c.passagesOf[c.rows[mid].entry]++
	for int(c.rows[s.to].to-c.rows[s.from].from) < c.seed && c.growPassage(&s) {
	}
	c.counting++
	for i := s.from; i <= s.to; i++ {
		for _, k := range c.rowTerms[c.rowTermStarts[i]:c.rowTermStarts[i+1]] {
			if c.lastCounted[k] != c.counting {
				c.lastCounted[k] = c.counting
				c.remainingWorth[k] *= repeatedWorth
			}
		}
	}
	return s
}

// frameTokens is the size of the text around one more passage of an entry, in tokens.
func (c *passageChooser) frameTokens(entry int) int {
	if c.passagesOf[int32(entry)] > 0 {
		return furtherExcerptTokens
	}
	return hitTokens + estimateTokens(c.x.entries[entry].Call)
}

func (c *passageChooser) useRow(i int) {
	c.usedRows[i] = true
	c.tokensLeft -= c.tokens(i)
}

// growPassage adds the better of the two rows next to a passage, if there is room. Of equal
// ones it adds the row below: what follows a match is more useful than what leads to it.
func (c *passageChooser) growPassage(s *span) bool {
	fits := func(i int) bool {
		return c.sameEntry(i, s.from) && !c.usedRows[i] && c.tokens(i) <= c.tokensLeft
	}
	up, down := fits(s.from-1), fits(s.to+1)
	switch {
	case down && (!up || c.density[s.to+1] >= c.density[s.from-1]):
		s.to++
		c.useRow(s.to)
	case up:
		s.from--
		c.useRow(s.from)
	default:
		return false
	}
	return true
}

// growAll grows the passages in turns until there is no more room, and joins those that
// meet.
func (c *passageChooser) growAll(spans []span) []span {
	for grown := true; grown && c.tokensLeft > 0; {
		grown = false
		for i := range spans {
			grown = c.growPassage(&spans[i]) || grown
		}
		for i := 0; i < len(spans); i++ {
			for j := i + 1; j < len(spans); j++ {
				a, b := &spans[i], spans[j]
				if c.rows[a.from].entry != c.rows[b.from].entry || a.to+1 != b.from && b.to+1 != a.from {
					continue
				}
				a.from, a.to = min(a.from, b.from), max(a.to, b.to)
				a.copies = append(slices.Clip(a.copies), b.copies...)
				spans = slices.Delete(spans, j, j+1)
				c.tokensLeft += furtherExcerptTokens
				i, grown = -1, true
				break
			}
		}
	}
	return spans
}
