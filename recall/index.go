package recall

import (
	"context"
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"time"
)

// Index searches entries. It never changes and is safe for concurrent use. It takes about six times
// the memory of short texts, besides the entries: 69 MB for 100,000 messages of 115 bytes.
type Index struct {
	entries []Entry
	// terms are the numbers of the terms by their words and by the stems of these, which forms
	// of a word have in common.
	terms      map[string]int32
	postings   [][]posting // per term, in the order of the entries
	lengths    []int       // tokens per entry
	meanLength float64     // of lengths
	views      []string    // the texts as they are searched
	rows       []row       // of all views
	rowStarts  []int32     // of the rows of each entry
	termRows   [][]int32   // per term, the rows that hold it
	sections   []section
	sectionOf  []int32 // by entry
	// asks are the entries that end with a question.
	asks   []bool
	newest time.Time // of the entries
	// words are those of terms, sorted; they are made when they are first asked for.
	words func() []string
}

type posting struct {
	entry int32
	count int32
}

// NewIndex indexes the text of entries, and the tool, call and summary of results, so that a result
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
		if e.Tool != "" { // it has more than the beginning of the text
			x.add(i, e.Summary)
		}
	}
	x.computeMeanLength()
	x.words = sync.OnceValue(func() []string { return slices.Sorted(maps.Keys(x.terms)) })
	x.addSections()
	return x, nil
}

func newIndex(entries []Entry) *Index {
	return &Index{entries: entries, terms: make(map[string]int32, 2*len(entries)), lengths: make([]int, len(entries))}
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
		id = x.addTerm(string(token))
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

// addTerm numbers a word that is new: another form of a known one has its number.
func (x *Index) addTerm(word string) int32 {
	root := stem(word)
	id, known := x.terms[root]
	if !known {
		id = int32(len(x.postings))
		x.terms[root] = id
		x.postings = append(x.postings, nil)
	}
	x.terms[word] = id
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
	b  = 0.4
)

// rarity is the weight of a term in so many entries: its idf, and for a name of one or a few entries
// more, because in logs of code it says where to look.
func (x *Index) rarity(holders int, isName bool) float64 {
	weight := idf(len(x.entries), holders)
	if isName {
		weight *= 1 + 1/float64(holders)
	}
	return weight
}

// idf is the weight of a term that so many of the texts have, as BM25 has it, never negative.
func idf(texts, holders int) float64 {
	n, df := float64(texts), float64(holders)
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// bm25 is the BM25 weight of a term that occurs count times in entry i, without its rarity.
func (x *Index) bm25(i int, count float64) float64 {
	return saturate(count, float64(x.lengths[i])/x.meanLength)
}

// saturate is the weight of so many occurrences in a text of a length, relative to the mean.
func saturate(count, length float64) float64 {
	return count * (k1 + 1) / (count + k1*(1-b+b*length))
}
