// Package cost calculates what a conversation costs where the provider has a prompt cache,
// and when it pays to compact it.
//
// The unit is one token of input that is neither read from the cache nor written to it.
// Everything is a pure function of its arguments.
package cost

import (
	"math"

	"github.com/palimpsest-ai/palimpsest/token"
)

// Rates are what tokens cost, in units of one token of uncached input.
type Rates struct {
	// Write is for input that is written to the cache, Read for input that is read from
	// it, Output for what the model says.
	Write, Read, Output float64
}

// UsualRates are the rates of the most used providers, for a model whose own are unknown:
// 1.25 for a write that lives five minutes, a tenth for a read, five for output
// (models.json of package token, 2026-11).
func UsualRates() Rates { return Rates{Write: 1.25, Read: 0.10, Output: 5} }

// RatesOf returns the rates of a model for prompts of that length in tokens, with the
// shortest time to live of its cache. It is false when the table has no price for the
// model.
func RatesOf(m token.Model, prompt int) (Rates, bool) {
	p, ok := m.Price(prompt)
	if !ok || p.Input <= 0 {
		return Rates{}, false
	}
	r := Rates{Write: 1, Read: 1, Output: p.Output / p.Input}
	if m.Cache.Match != "" && p.CacheRead > 0 {
		r.Read = p.CacheRead / p.Input
	}
	if p.CacheWrite > 0 {
		r.Write = p.CacheWrite / p.Input
	}
	return r, true
}

// Cycle is a conversation that is compacted again and again, always to the same size. All
// sizes are tokens.
type Cycle struct {
	// Growth is what each step adds.
	Growth float64
	// After is the size of the prompt just after a compaction, including the step that
	// comes with it. Kept is the part at its beginning that the compaction leaves as it
	// was, so that the cache still has it: system, tools and what precedes the first
	// change.
	After, Kept float64
	// CompactionCost is what making a compaction costs, in units of uncached input: 0
	// without a model.
	CompactionCost float64
	// Uncached is what the compacting step brings that no cache holds yet. It is written
	// whether the step compacts or not, so a large one is a good occasion. 0 stands for
	// Growth.
	Uncached float64
	// ExpiryChance is the chance that the provider has forgotten the prompt at the next
	// step, 0 to 1. Compacting is free then, so waiting for it is worth something.
	ExpiryChance float64
}

// rewrite is A, the cost of a compaction beyond that of the steps around it: the rest of
// the prompt is written instead of read.
func (c Cycle) rewrite(r Rates) float64 {
	fresh := c.Uncached
	if fresh <= 0 {
		fresh = c.Growth
	}
	return max(0, (r.Write-r.Read)*(c.After-c.Kept-fresh)+c.CompactionCost)
}

// Steps is how many steps there should be between two compactions, at least one: the
// square root of 2A/(r·g) or, where the cache expires with the chance h in each step,
// which ends a cycle for free, the n of
//
//	h·n − 1 + e^(−h·n) = h²·A/(r·g)
//
// which is a little more. It is infinite when reading costs nothing or nothing is added.
func (c Cycle) Steps(r Rates) float64 {
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

// BreakEven is the number of steps after which a compaction has earned its cost: it
// removed freed tokens from a prompt, and rest tokens followed the first of them,
// including the freed ones. On an expired cache it is 0; when nothing was freed, or
// reading costs nothing, it is infinite.
func BreakEven(r Rates, freed, rest int, cacheExpired bool) float64 {
	switch {
	case freed <= 0 || r.Read <= 0:
		return math.Inf(1)
	case cacheExpired:
		return 0
	}
	return max(0, (r.Write-r.Read)*float64(rest-freed)/(r.Read*float64(freed)))
}
