package token

import "math"

// Rates are what tokens cost, in units of one token of input that is neither read from the cache of
// the provider nor written to it.
type Rates struct {
	// Write is for input that is written to the cache, Read for input that is read from
	// it, Output for what the model says.
	Write, Read, Output float64
}

// UsualRates are the rates of the most used providers, for a model whose own are unknown:
// 1.25 for a write that lives five minutes, a tenth for a read, five for output
// (models.json, 2026-11).
func UsualRates() Rates { return Rates{Write: 1.25, Read: 0.10, Output: 5} }

// Rates returns the rates of the model for prompts of that length in tokens, with the
// shortest time to live of its cache. It is false when the table has no price for the
// model.
func (m Model) Rates(prompt int) (Rates, bool) {
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

// BreakEven is the number of steps after which a compaction has earned its cost: it
// removed freed tokens from a prompt, and rest tokens followed the first of them,
// including the freed ones. On an expired cache it is 0; when nothing was freed, or
// reading costs nothing, it is infinite.
func (r Rates) BreakEven(freed, rest int, cacheExpired bool) float64 {
	switch {
	case freed <= 0 || r.Read <= 0:
		return math.Inf(1)
	case cacheExpired:
		return 0
	}
	return max(0, (r.Write-r.Read)*float64(rest-freed)/(r.Read*float64(freed)))
}
