package effort_test

import (
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/effort"
)

// TestEach: each number comes once, and all have come when it returns.
func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 1000} {
		seen := make([]atomic.Int32, n)
		effort.Each(n, 16, func(i int) { seen[i].Add(1) })
		for i := range seen {
			if got := seen[i].Load(); got != 1 {
				t.Errorf("%d of %d: %d times", i, n, got)
			}
		}
	}
}
