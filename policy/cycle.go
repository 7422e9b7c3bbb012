package policy

import (
	"cmp"
	"math"

	"github.com/palimpsest-ai/palimpsest/token"
)

// cycle is a conversation that is compacted again and again, always to the same size. All
// sizes are tokens; costs are in the unit of token.Rates.
type cycle struct {
	// Growth is what each step adds.
	Growth float64
	// After is the size of the prompt just after a compaction, including the step that
	// comes with it. Kept is the part at its beginning that the compaction leaves as it
	// was, so that the cache still has it: system, tools and what precedes the first
	// change.
	After, Kept float64
	// Uncached is what the compacting step brings that no cache holds yet. It is written
	// whether the step compacts or not, so a large one is a good occasion. 0 stands for
	// Growth.
	Uncached float64
	// ExpiryChance is the chance that the provider has forgotten the prompt at the next
	// step, 0 to 1. Compacting is free then, so waiting for it is worth something.
	ExpiryChance float64
}

// rewrite is A, the cost of a compaction beyond that of the steps around it, without that of a model: the
// rest of the prompt is written instead of read.
func (c cycle) rewrite(r token.Rates) float64 {
	return max(0, (r.Write-r.Read)*(c.After-c.Kept-cmp.Or(c.Uncached, c.Growth)))
}

// steps is how many steps there should be between two compactions, at least one: the
// square root of 2A/(r·g) or, where the cache expires with the chance h in each step,
// which ends a cycle for free, the n of
//
//	h·n − 1 + e^(−h·n) = h²·A/(r·g)
//
// which is a little more. It is infinite when reading costs nothing or nothing is added.
func (c cycle) steps(r token.Rates) float64 {
	if r.Read*c.Growth <= 0 {
		return math.Inf(1)
	}
	a := c.rewrite(r) / (r.Read * c.Growth)
	if c.ExpiryChance <= 0 {
		return max(1, math.Sqrt(2*a))
	}
	return max(1, solveCycle(c.ExpiryChance*c.ExpiryChance*a)/c.ExpiryChance)
}

// solveCycle returns the u for which u − 1 + e^(−u) is z, by Newton's method: the function
// is convex and the first u is not too small, so the iteration approaches it from above.
func solveCycle(z float64) float64 {
	if z <= 0 {
		return 0
	}
	u := math.Sqrt(2*z) + z
	for range 20 {
		u -= (u + math.Expm1(-u) - z) / -math.Expm1(-u)
	}
	return u
}
