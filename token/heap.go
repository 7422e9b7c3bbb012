package token

// part is a part of a piece, in the linked list of mergeLong: it starts at its index and ends at
// next.
type part struct {
	prev, next int32
	rank       uint32 // of this part and the next joined, or noRank
}

// mergeLong does the same as mergeShort in O(n log n), for pieces such as a megabyte of one
// character.
func (e *encoding) mergeLong(piece string) int {
	n := len(piece)
	parts := make([]part, n)
	h := make(candidates, 0, n)
	for i := range parts {
		parts[i] = part{int32(i) - 1, int32(i) + 1, noRank}
		if i+1 < n {
			if r := e.pairs[uint(piece[i])<<8|uint(piece[i+1])] - 1; r != noRank {
				parts[i].rank = r
				h = append(h, candidate(r)<<32|candidate(i))
			}
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}

	count := n
	for len(h) > 0 {
		top := h.pop()
		i := int32(top & (1<<32 - 1))
		p := &parts[i]
		if p.rank != uint32(top>>32) {
			continue // out of date: one of the two parts was merged since
		}
		gone := &parts[p.next]
		gone.rank = noRank
		p.next = gone.next
		if int(p.next) < n {
			parts[p.next].prev = i
		}
		count--
		for _, b := range [2]int32{i, p.prev} {
			if b < 0 {
				continue
			}
			q := &parts[b]
			q.rank = noRank
			if int(q.next) < n {
				q.rank = e.rank(piece[b:parts[q.next].next])
			}
			if q.rank != noRank {
				h.push(candidate(q.rank)<<32 | candidate(b))
			}
		}
	}
	return count
}

// candidate is a possible merge: rank in the high half, position in the low, so
// that the smallest is the leftmost of lowest rank.
type candidate uint64

// candidates is a binary heap, smallest first.
type candidates []candidate

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
