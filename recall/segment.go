package recall

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
)

// segment is which words stand where in some neighboring entries. Segments are made at the same time,
// and the tables of one fit into the processor's cache.
type segment struct {
	first int // entry
	// A term is a root: what the forms of a word have in common. words are those that are no roots. Both
	// are sorted.
	roots, words []string
	// The places of a term are places[starts[term]:starts[term+1]], by entry: rows, or the complement of
	// the entry, from the first, for what stands in its call or summary. holders is in how many entries.
	starts, places, holders []int32
	rows                    []start
}

// start is the beginning of a row.
type start struct {
	entry int32 // from the first of the segment
	from  int32 // in the view
}

// segmentBytes is how much text a segment has, and more only by its last entry.
const segmentBytes = 256 << 10

// addSegments analyzes all entries, on all processors, in segments of so many bytes.
func (x *Index) addSegments(ctx context.Context, size int) error {
	var from []int
	bytes := size
	for i := range x.entries {
		if bytes >= size {
			from, bytes = append(from, i), 0
		}
		bytes += len(x.entries[i].Text)
	}
	x.segments = make([]*segment, len(from))
	from = append(from, len(x.entries))
	var next atomic.Int64
	var workers sync.WaitGroup
	failed := make(chan error, runtime.GOMAXPROCS(0))
	for range min(cap(failed), len(x.segments)) {
		workers.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					failed <- failsafe.Recovered(p)
				}
			}()
			a := newAnalysis()
			for n := next.Add(1) - 1; int(n) < len(x.segments); n = next.Add(1) - 1 {
				var err error
				if x.segments[n], err = a.segment(ctx, x, from[n], from[n+1]); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	workers.Wait()
	close(failed)
	return <-failed
}

// analysis makes segments, one after another.
type analysis struct {
	known  map[string][2]int32 // where in parts the terms of a whole token are, by its spelling
	parts  []int32
	terms  map[string]int32 // by word and by root
	roots  []string         // of each term
	counts []int32          // of each term
	// ids and places are those of each token, in order.
	ids, places []int32
}

func newAnalysis() *analysis {
	return &analysis{known: map[string][2]int32{}, terms: map[string]int32{}}
}

// segment makes the segment of some entries, and what the index knows of each.
func (a *analysis) segment(ctx context.Context, x *Index, first, to int) (*segment, error) {
	clear(a.known)
	clear(a.terms)
	a.parts, a.roots, a.counts, a.ids, a.places = a.parts[:0], a.roots[:0], a.counts[:0], a.ids[:0], a.places[:0]
	s := &segment{first: first}
	for i := first; i < to; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := &x.entries[i]
		n, row := len(a.ids), len(s.rows)
		x.views[i], x.rowStarts[i] = decodeEscapes(e.Text), int32(row)
		x.escaped[i] = len(x.views[i]) != len(e.Text)
		eachRow(x.views[i], func(from, _ int) { s.rows = append(s.rows, start{int32(i - first), int32(from)}) })
		a.addText(x.views[i], s.rows, row)
		a.addBeside(e.Tool, i-first)
		a.addBeside(e.Call, i-first)
		if e.Tool != "" { // it has more than the beginning of the text
			a.addBeside(e.Summary, i-first)
		}
		x.lengths[i] = int32(len(a.ids) - n)
	}
	a.finish(s)
	return s, nil
}

// addText adds the tokens of a view, whose rows begin with `at`.
func (a *analysis) addText(view string, rows []start, at int) {
	rowOf := func(row, from int) int {
		for row+1 < len(rows) && int(rows[row+1].from) <= from {
			row++
		}
		return row
	}
	eachWhole(view, func(from, to int, compound bool) {
		at = rowOf(at, from)
		if at+1 == len(rows) || to <= int(rows[at+1].from) {
			a.addWhole(view[from:to], compound, int32(at))
			return
		}
		tokensOf(view, from, to, compound, func(token string, _ grain, from, _ int) { a.add(a.term(token), int32(rowOf(at, from))) })
	})
}

// addBeside adds a text that stands beside that of an entry.
func (a *analysis) addBeside(text string, entry int) {
	eachWhole(text, func(from, to int, compound bool) { a.addWhole(text[from:to], compound, ^int32(entry)) })
}

// addWhole adds a whole token and its parts. They are looked up once for each spelling.
func (a *analysis) addWhole(spelling string, compound bool, place int32) {
	of, known := a.known[spelling]
	if !known {
		of[0] = int32(len(a.parts))
		tokensOf(spelling, 0, len(spelling), compound, func(token string, _ grain, _, _ int) { a.parts = append(a.parts, a.term(token)) })
		of[1] = int32(len(a.parts))
		a.known[spelling] = of
	}
	for _, id := range a.parts[of[0]:of[1]] {
		a.add(id, place)
	}
}

func (a *analysis) add(id, place int32) {
	a.counts[id]++
	a.ids, a.places = append(a.ids, id), append(a.places, place)
}

// term numbers a word: forms of it have one number.
func (a *analysis) term(word string) int32 {
	id, known := a.terms[word]
	if known {
		return id
	}
	root := stem(word)
	if id, known = a.terms[root]; !known {
		id = int32(len(a.roots))
		a.roots, a.counts = append(a.roots, root), append(a.counts, 0)
		a.terms[root] = id
	}
	a.terms[word] = id
	return id
}

// finish sorts what was added by term.
func (a *analysis) finish(s *segment) {
	n := len(a.roots)
	s.roots = slices.Clone(a.roots)
	slices.Sort(s.roots)
	s.starts, s.holders, s.places = make([]int32, n+1), make([]int32, n), make([]int32, len(a.places))
	order := make([]int32, n) // of the terms, as they were numbered
	for at, root := range s.roots {
		id := a.terms[root]
		order[id], s.starts[at+1] = int32(at), s.starts[at]+a.counts[id]
	}
	next := slices.Clone(s.starts)
	for i, id := range a.ids {
		term, place := order[id], a.places[i]
		at := next[term]
		if at == s.starts[term] || s.entryAt(s.places[at-1]) != s.entryAt(place) {
			s.holders[term]++
		}
		s.places[at], next[term] = place, at+1
	}
	s.words = make([]string, 0, len(a.terms)-n)
	for word, id := range a.terms {
		if word != a.roots[id] {
			s.words = append(s.words, word)
		}
	}
	slices.Sort(s.words)
}

// entryAt is the entry of a place, from the first of the segment.
func (s *segment) entryAt(place int32) int32 {
	if place < 0 {
		return ^place
	}
	return s.rows[place].entry
}

// lookUp returns the term of a root in each segment, -1 where it is not.
func (x *Index) lookUp(root string) (ids []int32, known bool) {
	ids = make([]int32, len(x.segments))
	for n, s := range x.segments {
		at, is := slices.BinarySearch(s.roots, root)
		if ids[n] = -1; is {
			ids[n], known = int32(at), true
		}
	}
	return ids, known
}

// holders is how many entries have a term.
func (x *Index) holders(ids []int32) (n int) {
	for k, id := range ids {
		if id >= 0 {
			n += int(x.segments[k].holders[id])
		}
	}
	return n
}

// occurrences yields the entries that have a term, in order, with its places there: of its numbers in the
// segments from the first on.
func (x *Index) occurrences(first int, ids []int32) iter.Seq2[int, []int32] {
	return func(yield func(int, []int32) bool) {
		for n, id := range ids {
			if id < 0 {
				continue
			}
			s := x.segments[first+n]
			for rest := s.places[s.starts[id]:s.starts[id+1]]; len(rest) > 0; {
				e, to := s.entryAt(rest[0]), 1
				for to < len(rest) && s.entryAt(rest[to]) == e {
					to++
				}
				if !yield(s.first+int(e), rest[:to]) {
					return
				}
				rest = rest[to:]
			}
		}
	}
}

// maxPrefixWords is how many words an unknown word may mean.
const maxPrefixWords = 32

// wordsWithPrefix returns the words that begin so, shortest first.
func (x *Index) wordsWithPrefix(prefix string) []string {
	var found []string
	for _, s := range x.segments {
		for _, words := range [][]string{s.roots, s.words} {
			at, _ := slices.BinarySearch(words, prefix)
			for ; at < len(words) && strings.HasPrefix(words[at], prefix); at++ {
				found = append(found, words[at])
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	found = slices.Compact(found)
	return found[:min(len(found), maxPrefixWords)]
}
