package summarize

// scored is a candidate with its value for its length.
type scored struct {
	density float32
	at      int32
}

// ranked is a heap with the densest on top; equal ones come in the order of the
// thread.
type ranked []scored

// down moves the entry at i below those that are denser.
func (r ranked) down(i int) {
	above := func(a, b scored) bool { return a.density > b.density || a.density == b.density && a.at < b.at }
	for {
		best := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(r); k++ {
			if above(r[k], r[best]) {
				best = k
			}
		}
		if best == i {
			return
		}
		r[i], r[best] = r[best], r[i]
		i = best
	}
}

// greedy offers what has a density to take, the densest first, until take says that
// it is enough. Densities only fall as others are taken, so one whose density,
// computed again, still beats the next one's old figure is the best (lazy greedy for
// submodular values; Minoux 1978).
func greedy(list []int, density func(i int) float32, take func(i int, density float32) (more bool)) {
	h := make(ranked, 0, len(list))
	for _, i := range list {
		if d := density(i); d > 0 {
			h = append(h, scored{d, int32(i)})
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		top := h[0]
		if d := density(int(top.at)); d < top.density {
			h[0].density = d
			h.down(0)
			continue
		}
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		h.down(0)
		if !take(int(top.at), top.density) {
			return
		}
	}
}
