package token

import (
	"math/bits"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
)

// mergeLong does the same as mergeShort in O(n log n), for pieces such as a megabyte of one
// character. It takes about eight times their bytes. Once its context is done its result means
// nothing.
func (e *encoding) mergeLong(live *effort.Budget, piece string) int {
	n := len(piece)
	starts := newBitset(n) // where parts start
	h := make(candidates, 0, n)
	for i := range n - 1 {
		if i%between == 0 && !live.Live(countEffort*between) {
			return 0
		}
		if r := e.pairs[uint(piece[i])<<8|uint(piece[i+1])] - 1; r != noRank {
			h = append(h, newCandidate(r, i, i+2))
		}
	}
	if !h.order(live) {
		return 0
	}
	// holds reports whether both parts of a candidate are still there, and where the second starts.
	holds := func(c candidate) (second int, ok bool) {
		at, end := c.span()
		if !starts.has(at) {
			return 0, false
		}
		second = starts.after(at)
		return second, second < n && starts.after(second) == end
	}

	count := n
	for len(h) > 0 {
		if !live.Live(heapEffort) {
			return 0
		}
		top := h.pop()
		second, ok := holds(top)
		if !ok {
			continue // out of date: one of the two parts was merged since
		}
		starts.remove(second)
		count--
		at, end := top.span()
		if cap(h)-len(h) < 2 { // there is room once what is out of date is gone
			kept := h[:0]
			for _, c := range h {
				if _, ok := holds(c); ok {
					kept = append(kept, c)
				}
			}
			if h = kept; !h.order(live) {
				return 0
			}
		}
		if end < n {
			next := starts.after(end)
			if r := e.rank(piece[at:next]); r != noRank {
				h.push(newCandidate(r, at, next))
			}
		}
		if at > 0 {
			before := starts.before(at)
			if r := e.rank(piece[before:end]); r != noRank {
				h.push(newCandidate(r, before, end))
			}
		}
	}
	return count
}

const (
	// heapEffort is about what taking a candidate from a large heap takes, in units of effort.
	heapEffort = 256
	// between is how many bytes lie between two looks while the heap is filled.
	between = 1 << 12
)

// bitset is a set of the numbers below its length, which is the last word.
type bitset struct {
	words []uint64
	n     int
}

// newBitset returns the set of all numbers below n.
func newBitset(n int) bitset {
	b := bitset{make([]uint64, n/64+1), n}
	for i := range b.words {
		b.words[i] = ^uint64(0)
	}
	return b
}

func (b bitset) has(i int) bool { return b.words[i/64]>>(i%64)&1 != 0 }
func (b bitset) remove(i int)   { b.words[i/64] &^= 1 << (i % 64) }

// after is the next number of the set above i, or its length.
func (b bitset) after(i int) int {
	i++
	w := b.words[i/64] >> (i % 64)
	if w != 0 {
		return min(b.n, i+bits.TrailingZeros64(w))
	}
	for k := i/64 + 1; k < len(b.words); k++ {
		if w := b.words[k]; w != 0 {
			return min(b.n, k*64+bits.TrailingZeros64(w))
		}
	}
	return b.n
}

// before is the next number of the set below i. There must be one.
func (b bitset) before(i int) int {
	i--
	if w := b.words[i/64] << (63 - i%64); w != 0 {
		return i - bits.LeadingZeros64(w)
	}
	k := i/64 - 1
	for b.words[k] == 0 {
		k--
	}
	return k*64 + 63 - bits.LeadingZeros64(b.words[k])
}

// candidate is a possible merge of two parts: the rank in the high bits, then the position, so that
// the smallest is the leftmost of lowest rank, and last the length of both.
type candidate uint64

const (
	lengthBits   = 8 // no token is longer
	positionBits = 38
)

func newCandidate(rank uint32, at, end int) candidate {
	return candidate(rank)<<(positionBits+lengthBits) | candidate(at)<<lengthBits | candidate(end-at)
}

// span is where the two parts begin and end.
func (c candidate) span() (at, end int) {
	at = int(c >> lengthBits & (1<<positionBits - 1))
	return at, at + int(c&(1<<lengthBits-1))
}

// candidates is a binary heap, smallest first.
type candidates []candidate

// order makes a heap of candidates in any order; false where the context is done.
func (h candidates) order(live *effort.Budget) bool {
	for i := len(h)/2 - 1; i >= 0; i-- {
		if !live.Live(heapEffort / 8) {
			return false
		}
		h.down(i)
	}
	return true
}

func (h *candidates) push(c candidate) {
	*h = append(*h, c)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= s[i] {
			break
		}
		s[up], s[i] = s[i], s[up]
		i = up
	}
}

func (h *candidates) pop() candidate {
	s := *h
	top := s[0]
	s[0] = s[len(s)-1]
	*h = s[:len(s)-1]
	h.down(0)
	return top
}

func (h candidates) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[i] <= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
