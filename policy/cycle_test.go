package policy

import (
	"math"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/token"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*math.Abs(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestLaw holds the closed form to figures reckoned by hand from it, at a size of
// 20,000 tokens of which 8,000 stay.
func TestLaw(t *testing.T) {
	for _, test := range []struct {
		write, read, growth float64
		steps               float64
	}{
		{1.25, 0.10, 800, 17.9},
		{1.25, 0.10, 1_500, 12.7},
		{1.25, 0.10, 4_000, 6.8},
		{1.00, 0.10, 1_500, 11.2},
		{2.00, 0.10, 1_500, 16.3},
		{1.00, 0.50, 1_500, 3.7},
	} {
		r := token.Rates{Write: test.write, Read: test.read}
		c := cycle{Growth: test.growth, After: 20_000, Kept: 8_000}
		near(t, "steps", c.steps(r), test.steps, 0.012)
	}
}

// TestLawIsTheOptimum bills long conversations step by step: no trigger is
// cheaper than the law's by more than what whole steps make of it.
func TestLawIsTheOptimum(t *testing.T) {
	for i, growth := range []int{800, 1_500, 4_000} {
		for k, r := range []token.Rates{{Write: 1.25, Read: 0.1}, {Write: 2, Read: 0.1}, {Write: 1, Read: 0.25}} {
			if i != k && !corpus.Long() {
				continue
			}
			c := cycle{Growth: float64(growth), After: 20_000, Kept: 8_000}
			best, at := math.Inf(1), 0
			for every := 1; every <= 60; every++ {
				if got := billed(c, r, every); got < best {
					best, at = got, every
				}
			}
			steps := c.steps(r)
			near(t, "the best number of steps", float64(at), steps, 1/steps+0.1)
			mine := billed(c, r, int(math.Round(steps)))
			near(t, "cost at the law's number of steps", mine, best, 0.003)
		}
	}
}

// billed is the mean cost of a step when every so many of them compact to the size of the
// cycle: what a request shares with the one before it is read, the rest written.
func billed(c cycle, r token.Rates, every int) float64 {
	const steps = 4_000
	sum, size := 0.0, 0.0
	for n := range steps {
		read := size
		if n%every == 0 {
			read, size = c.Kept, c.After-c.Growth
		}
		size += c.Growth
		sum += r.Read*read + r.Write*(size-read)
	}
	return sum / steps
}

// TestExpiry: where a cycle may end for nothing, waiting is worth a little more;
// the figures are reckoned by hand from u − 1 + e^(−u) = h²·A/(r·g), with 12,880
// for A.
func TestExpiry(t *testing.T) {
	r := token.Rates{Write: 1.25, Read: 0.1}
	for _, test := range []struct{ expiry, steps float64 }{
		{0, 17.94}, {0.001, 18.00}, {0.03, 19.71}, {0.1, 25.30}, {1, 162},
	} {
		c := cycle{Growth: 800, After: 20_000, Kept: 8_000, ExpiryChance: test.expiry}
		near(t, "steps", c.steps(r), test.steps, 0.001)
	}
	// What a step brings is not written once more: with 6,000 of the 12,000 new,
	// A is 6,900.
	c := cycle{Growth: 800, After: 20_000, Kept: 8_000, Uncached: 6_000}
	near(t, "steps", c.steps(r), math.Sqrt(2*6_900/80.0), 1e-9)
	// Where all of it is new, every step may compact.
	c.Uncached = 30_000
	if got := c.steps(r); got != 1 {
		t.Errorf("with nothing to rewrite: %v steps", got)
	}
}

// TestExpiryIsTheOptimum: no other number of steps has a lower mean, reckoned
// step by step over the cycles that end early.
func TestExpiryIsTheOptimum(t *testing.T) {
	r := token.Rates{Write: 1.25, Read: 0.1}
	for _, growth := range []float64{300, 800, 2_000} {
		for _, h := range []float64{0.005, 0.02, 0.05, 0.1} {
			c := cycle{Growth: growth, After: 20_000, Kept: 8_000, ExpiryChance: h}
			rewrite := (r.Write - r.Read) * (c.After - c.Kept - growth)
			mean := func(n int) float64 {
				sum, steps, there := 0.0, 0.0, 1.0
				for j := range n {
					sum += there * r.Read * growth * float64(j)
					steps += there
					there *= 1 - h
				}
				return (sum + there*rewrite) / steps
			}
			best, at := math.Inf(1), 0
			for n := 1; n < 200; n++ {
				if got := mean(n); got < best {
					best, at = got, n
				}
			}
			steps := c.steps(r)
			if math.Abs(steps-float64(at)) > 1 {
				t.Errorf("growth %v, expiry %v: %.1f steps, the best are %d", growth, h, steps, at)
			}
			near(t, "cost at the law's number of steps", mean(int(math.Round(steps))), best, 0.003)
		}
	}
}
