package eval

import "math"

// cheapestSchedule finds the best requests to compact at, for a renderer that leaves
// after(k) tokens of the k-th: the cost of the input, and how often it compacts. Only
// system and tools stay in the cache through a compaction.
func (r *replay) cheapestSchedule(after func(k int) int) *sessionCost {
	n := len(r.requests)
	left := make([]float64, n)
	for k := range left {
		whole := r.Fixed + r.historyTokens(k)
		left[k] = float64(whole)
		if k > 0 {
			left[k] = float64(min(whole, after(k)))
		}
	}
	sum := make([]float64, n) // of the segment that begins at each step, so far
	compact, least := leastCost(n, func(i, j int) float64 {
		k := j - 1 // the segments grow by one step at a time
		grown := float64(r.historyTokens(k) - r.historyTokens(i))
		size, fixed := left[i]+grown, float64(r.Fixed)
		read := 0.0
		switch {
		case r.requests[k].cold || k == 0:
		case k == i:
			read = fixed
		default:
			read = left[i] + float64(r.historyTokens(k-1)-r.historyTokens(i))
		}
		rates, token := r.price(int(size))
		sum[i] += token * (rates.Read*read + rates.Write*(size-read))
		return sum[i]
	})
	return &sessionCost{input: least, compactions: len(compact)}
}

// leastCost finds when to compact a conversation of n steps at the least cost, knowing all
// of it: segment(i, j) is the cost of the steps from i up to and without j when step i
// begins with a compaction, or for i = 0 with nothing compacted. It returns the steps that
// compact, without the first, and the cost. It calls segment n(n+1)/2 times.
//
// No policy that makes the same kind of compactions can do better, so the ratio of its
// cost to this one is its regret.
func leastCost(n int, segment func(i, j int) float64) (compact []int, least float64) {
	best := make([]float64, n+1) // of the steps before
	from := make([]int, n+1)
	for j := 1; j <= n; j++ {
		best[j] = math.Inf(1)
		for i := range j {
			if c := best[i] + segment(i, j); c < best[j] {
				best[j], from[j] = c, i
			}
		}
	}
	for j := n; j > 0; j = from[j] {
		if from[j] > 0 {
			compact = append([]int{from[j]}, compact...)
		}
	}
	return compact, best[n]
}

// lowerBound is a cost that no renderer can beat: each message is sent until the last
// step that needs it, cached or not, whichever is cheaper, at the price of a short prompt.
func (r *replay) lowerBound() float64 {
	last := make([]int, r.Thread.Len()) // the last request that needs each message
	first := make([]int, r.Thread.Len())
	k := 0
	for i := range last {
		for k < len(r.requests)-1 && r.requests[k].at <= i {
			k++
		}
		first[i], last[i] = k, k
	}
	for k, a := range r.requests {
		for _, id := range r.Uses[a.step] {
			at := -1
			for _, s := range r.Refs[id].Seen {
				if s.Pos >= a.at {
					break
				}
				at = s.Pos
			}
			if at >= 0 {
				last[at] = max(last[at], k)
			}
		}
	}
	sum := r.rates.Read * float64(r.Fixed) * float64(len(r.requests))
	for i, size := range r.sizes {
		if i >= r.requests[len(r.requests)-1].at {
			break
		}
		later := float64(last[i] - first[i])
		sum += float64(size) * min(1+later, r.rates.Write+r.rates.Read*later)
	}
	return sum
}
