package eval

import (
	"math"
	"testing"
)

// TestLeastCost finds the best of all schedules, told by trying each.
func TestLeastCost(t *testing.T) {
	const n = 9
	grow := []float64{5, 1, 1, 9, 2, 2, 7, 1, 3}
	segment := func(i, j int) float64 {
		size, sum := 10.0, 0.0
		for k := i; k < j; k++ {
			size += grow[k]
			sum += size
		}
		if i > 0 {
			sum += 12
		}
		return sum
	}
	best := math.Inf(1)
	for set := range 1 << (n - 1) {
		sum, i := 0.0, 0
		for j := 1; j < n; j++ {
			if set>>(j-1)&1 == 1 {
				sum += segment(i, j)
				i = j
			}
		}
		best = min(best, sum+segment(i, n))
	}
	compact, least := leastCost(n, segment)
	if least != best {
		t.Errorf("%v, the best is %v", least, best)
	}
	sum, i := 0.0, 0
	for _, j := range compact {
		sum += segment(i, j)
		i = j
	}
	if sum+segment(i, n) != best {
		t.Errorf("the schedule %v costs %v", compact, sum+segment(i, n))
	}
}
