// Package cost reckons what a conversation costs where the provider keeps a
// prompt cache, and when it pays to compact it.
//
// The unit is one token of input that is neither read from the cache nor written
// to it. Everything is a pure function of its arguments, but for a Ledger, which
// remembers what a provider would.
package cost

import (
	"math"

	"github.com/palimpsest-ai/palimpsest/token"
)

// Rates are what tokens cost, in units of one token of uncached input.
type Rates struct {
	// Write is for input that is written to the cache, Read for input that is read
	// from it, Output for what the model says.
	Write, Read, Output float64
}

// UsualRates are the rates of the providers whose agents are used most, for a model
// whose own are not known: 1.25 for a write that lives five minutes, a tenth for
// a read, five for output (models.json of package token, 2026-11).
func UsualRates() Rates { return Rates{Write: 1.25, Read: 0.10, Output: 5} }

// RatesOf returns the rates of a model for prompts of the given length in tokens, with
// the shortest time to live that its cache has. It is false when the table holds
// no price of the model.
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

// Cycle is a conversation that is compacted again and again, always to the same
// size. Tokens throughout.
type Cycle struct {
	// Growth is what each step adds.
	Growth float64
	// After is the size of the prompt just after a compaction, the step that
	// comes with it included; Kept is the part at its beginning that the
	// compaction leaves as it was, so that the cache still has it: system, tools
	// and what stands before the first change.
	After, Kept float64
	// CompactionCost is what making a compaction costs, in units of uncached input: 0
	// without a model.
	CompactionCost float64
	// Uncached is what the step that compacts brings and no cache holds yet. It is
	// written whether the step compacts or not, so that a large one is a good
	// occasion. 0 stands for Growth.
	Uncached float64
	// ExpiryChance is the chance that the provider has forgotten the prompt at the next
	// step, 0 to 1. Compacting costs nothing then, so that waiting for it is worth
	// something.
	ExpiryChance float64
}

// rewrite is A, what a compaction costs beyond the steps that it stands between:
// the rest of the prompt is written where it would have been read.
func (c Cycle) rewrite(r Rates) float64 {
	fresh := c.Uncached
	if fresh <= 0 {
		fresh = c.Growth
	}
	return max(0, (r.Write-r.Read)*(c.After-c.Kept-fresh)+c.CompactionCost)
}

// Steps is how many steps there should be between two compactions, and at least
// one: the square root of 2A/(r·g) or, where the cache expires with the chance h in
// each step and a cycle then ends for nothing, the n of
//
//	h·n − 1 + e^(−h·n) = h²·A/(r·g)
//
// which is a little more. It is infinite when reading costs nothing or nothing is
// added.
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

// solveCycle returns the u for which u − 1 + e^(−u) is z, by Newton's method: the
// function is convex and the first u is not too small, so that it comes down to
// it from above.
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

// Mark is the size of the prompt beyond which it should be compacted: what stands
// in it after the best number of steps.
func (c Cycle) Mark(r Rates) float64 { return c.After + (c.Steps(r)-1)*c.Growth }

// BreakEven is the number of steps after which a compaction has earned what it
// cost: it took `freed` tokens out of a prompt, and what stood behind the first of
// them was `rest` tokens, the freed ones included. On a cold cache it is 0; when
// nothing was freed, or reading costs nothing, it is infinite.
func BreakEven(r Rates, freed, rest int, cacheExpired bool) float64 {
	switch {
	case freed <= 0 || r.Read <= 0:
		return math.Inf(1)
	case cacheExpired:
		return 0
	}
	return max(0, (r.Write-r.Read)*float64(rest-freed)/(r.Read*float64(freed)))
}
