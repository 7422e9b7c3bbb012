package cost

import "math"

// Schedule finds when to compact a conversation of n steps at the least cost, knowing all
// of it: segment(i, j) is the cost of the steps from i up to and without j when step i
// begins with a compaction, or for i = 0 with nothing compacted. It returns the steps that
// compact, without the first, and the cost. It calls segment n(n+1)/2 times.
//
// No policy that makes the same kind of compactions can do better, so the ratio of its
// cost to this one is its regret.
func Schedule(n int, segment func(i, j int) float64) (compact []int, least float64) {
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
