package recall

import (
	"context"
	"math"
	"sort"
	"strings"
)

// Index searches entries. It never changes and is safe for concurrent use.
type Index struct {
	entries    []Entry
	terms      map[string]int32
	postings   [][]posting // per term, in the order of the entries
	lengths    []int       // tokens per entry
	meanLength float64     // of lengths
	views      []string    // the texts as they are searched
	rows       []row       // of all views
	rowStarts  []int32     // of the rows of each entry
	termRows   [][]int32   // per term, the rows that hold it
	names      []name      // of all views
	// nameTerms are the terms that the names are made of.
	nameTerms []int32
}

type posting struct {
	entry int32
	count int32
}

// NewIndex indexes the text, tool, call, summary and keywords of entries, so that a result
// is also found by the path in its call. The entries must not be changed afterwards.
func NewIndex(entries []Entry) *Index {
	x, _ := NewIndexContext(context.Background(), entries)
	return x
}

// NewIndexContext is NewIndex, but returns the error of the context when it ends.
func NewIndexContext(ctx context.Context, entries []Entry) (*Index, error) {
	x := newIndex(entries)
	for i := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := &entries[i]
		x.addText(i, decodeEscapes(e.Text))
		x.add(i, e.Tool)
		x.add(i, e.Call)
		x.add(i, e.Summary)
		x.add(i, strings.Join(e.Keywords, " "))
	}
	if err := x.addNames(ctx); err != nil {
		return nil, err
	}
	x.computeMeanLength()
	return x, nil
}

func newIndex(entries []Entry) *Index {
	return &Index{entries: entries, terms: make(map[string]int32, 8*len(entries)), lengths: make([]int, len(entries))}
}

// add indexes a text of entry i; entries come in order.
func (x *Index) add(i int, text string) {
	var sc scanner
	sc.scan(text, func(token []byte, _ grain, _, _ int) { x.countToken(i, token) })
}

// countToken counts a token of entry i, and returns the number of its term.
func (x *Index) countToken(i int, token []byte) int32 {
	id, known := x.terms[string(token)]
	if !known {
		id = int32(len(x.postings))
		x.terms[string(token)] = id
		x.postings = append(x.postings, nil)
	}
	x.lengths[i]++
	list := x.postings[id]
	if n := len(list); n > 0 && list[n-1].entry == int32(i) {
		list[n-1].count++
	} else {
		x.postings[id] = append(list, posting{int32(i), 1})
	}
	return id
}

// addText indexes the view of entry i, and the rows of its terms.
func (x *Index) addText(i int, text string) {
	x.views = append(x.views, text)
	x.rowStarts = append(x.rowStarts, int32(len(x.rows)))
	x.rows = append(x.rows, rowsOf(i, text)...)
	at := int(x.rowStarts[i])
	var sc scanner
	sc.scan(text, func(token []byte, _ grain, from, _ int) {
		id := x.countToken(i, token)
		for at+1 < len(x.rows) && int(x.rows[at+1].from) <= from {
			at++
		}
		for at > int(x.rowStarts[i]) && int(x.rows[at].from) > from {
			at-- // the parts of a token are scanned after the whole
		}
		for int(id) >= len(x.termRows) {
			x.termRows = append(x.termRows, nil)
		}
		if rows := x.termRows[id]; len(rows) == 0 || rows[len(rows)-1] < int32(at) {
			x.termRows[id] = append(rows, int32(at))
		}
	})
}

// rowAt returns the row of byte `at` in the view of an entry.
func (x *Index) rowAt(entry, at int) int {
	rows := x.rows[x.rowStarts[entry]:]
	behind := func(n int) bool { return int(rows[n].entry) > entry || int(rows[n].from) > at }
	return int(x.rowStarts[entry]) + max(0, sort.Search(len(rows), behind)-1)
}

// passageText returns the text of a passage.
func (x *Index) passageText(s span) string {
	return x.views[x.rows[s.from].entry][x.rows[s.from].from:x.rows[s.to].to]
}

func (x *Index) computeMeanLength() {
	total := 0
	for _, n := range x.lengths {
		total += n
	}
	x.meanLength = max(1, float64(total)/float64(max(1, len(x.lengths))))
}

// Len returns the number of entries.
func (x *Index) Len() int { return len(x.entries) }

// The constants of BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance
// Framework" (2009): how fast repetition stops to count, and how much long texts are
// penalized.
const (
	k1 = 1.2
	b  = 0.75
)

// rarity is the weight of a term in so many entries: the idf of BM25, never negative, and
// more for a term of one or a few entries, because in logs of code such a term is a name.
func (x *Index) rarity(holders int) float64 {
	n, df := float64(len(x.entries)), float64(holders)
	return math.Log(1+(n-df+0.5)/(df+0.5)) * (1 + 1/df)
}

// bm25 is the BM25 weight of a term that occurs count times in entry i, without its rarity.
func (x *Index) bm25(i int, count float64) float64 {
	return count * (k1 + 1) / (count + k1*(1-b+b*float64(x.lengths[i])/x.meanLength))
}
