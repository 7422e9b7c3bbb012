package token_test

import (
	"math"
	"testing"

	"github.com/palimpsest-ai/palimpsest/token"
)

// TestBreakEven: at that number of steps what is freed has saved as much in reading as
// writing the rest cost, and on a cold cache at once.
func TestBreakEven(t *testing.T) {
	r := token.Rates{Write: 1.25, Read: 0.10}
	for _, freed := range []float64{10, 37, 50, 90} {
		n := r.BreakEven(int(freed), 100, false)
		if saved, written := r.Read*freed*n, (r.Write-r.Read)*(100-freed); math.Abs(saved-written) > 1e-9 {
			t.Errorf("%v of 100 tokens, %.1f steps: %v saved, %v spent", freed, n, saved, written)
		}
	}
	if n := r.BreakEven(5, 100, true); n != 0 {
		t.Errorf("cold: %.1f steps", n)
	}
	if n := r.BreakEven(0, 100, true); !math.IsInf(n, 1) {
		t.Errorf("nothing freed: %.1f steps", n)
	}
}

// TestRates: a model's rates are its prices over that of its input; a model
// without a cache has no cheaper reads.
func TestRates(t *testing.T) {
	m := token.Model{Prices: []token.Price{{Input: 4, Output: 20, CacheRead: 0.4, CacheWrite: 5}}, Cache: token.Cache{Match: "breakpoint"}}
	if r, ok := m.Rates(1_000); !ok || r != (token.Rates{Write: 1.25, Read: 0.1, Output: 5}) {
		t.Errorf("%+v, %v", r, ok)
	}
	m.Cache = token.Cache{}
	if r, ok := m.Rates(1_000); !ok || r.Read != 1 {
		t.Errorf("without a cache: %+v, %v", r, ok)
	}
	if _, ok := (token.Model{}).Rates(1_000); ok {
		t.Error("a model without prices has rates")
	}
	for _, m := range token.Models().All() {
		if r, ok := m.Rates(1_000); ok && (r.Read <= 0 || r.Read > 1 || r.Write < 1 || r.Output < 1) {
			t.Errorf("%s: %+v", m.Name, r)
		}
	}
}
