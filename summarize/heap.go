package summarize

type scored struct {
	density float32
	at      int
}

// heap is a max-heap by density; equal ones come in the order of the thread.
type heap []scored

func (h heap) above(a, b scored) bool {
	if a.density != b.density {
		return a.density > b.density
	}
	return a.at < b.at
}

func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h heap) down(i int) {
	for {
		best, l := i, 2*i+1
		for _, k := range [2]int{l, l + 1} {
			if k < len(h) && h.above(h[k], h[best]) {
				best = k
			}
		}
		if best == i {
			return
		}
		h[i], h[best] = h[best], h[i]
		i = best
	}
}

func (h *heap) pop() {
	old := *h
	old[0] = old[len(old)-1]
	*h = old[:len(old)-1]
	h.down(0)
}
