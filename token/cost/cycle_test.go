package cost_test

import (
	"math"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/token/cost"
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
		steps, mark         float64
	}{
		{1.25, 0.10, 800, 17.9, 33_600},
		{1.25, 0.10, 1_500, 12.7, 37_500},
		{1.25, 0.10, 4_000, 6.8, 43_100},
		{1.00, 0.10, 1_500, 11.2, 35_300},
		{2.00, 0.10, 1_500, 16.3, 43_000},
		{1.00, 0.50, 1_500, 3.7, 24_100},
	} {
		r := cost.Rates{Write: test.write, Read: test.read}
		c := cost.Cycle{Growth: test.growth, After: 20_000, Kept: 8_000}
		near(t, "steps", c.Steps(r), test.steps, 0.012)
		near(t, "mark", c.Mark(r), test.mark, 0.003)
	}
}

// TestLawIsTheOptimum bills long conversations step by step: no trigger is
// cheaper than the law's by more than what whole steps make of it.
func TestLawIsTheOptimum(t *testing.T) {
	for i, growth := range []int{800, 1_500, 4_000} {
		for k, r := range []cost.Rates{{Write: 1.25, Read: 0.1}, {Write: 2, Read: 0.1}, {Write: 1, Read: 0.25}} {
			if i != k && !corpus.Long() {
				continue
			}
			c := cost.Cycle{Growth: float64(growth), After: 20_000, Kept: 8_000}
			best, at := math.Inf(1), 0
			for every := 1; every <= 60; every++ {
				if got := billed(t, c, r, every); got < best {
					best, at = got, every
				}
			}
			steps := c.Steps(r)
			near(t, "the best number of steps", float64(at), steps, 1/steps+0.1)
			mine := billed(t, c, r, int(math.Round(steps)))
			near(t, "cost at the law's number of steps", mine, best, 0.003)
		}
	}
}

// billed is the mean cost of a step when every so many of them compact to the
// size of the cycle.
func billed(t *testing.T, c cost.Cycle, r cost.Rates, every int) float64 {
	t.Helper()
	l := cost.NewLedger(token.Cache{Match: "breakpoint", Marks: 4}, 0)
	const steps = 4_000
	sum, fresh := 0.0, uint64(1)
	head := cost.Block{Hash: 1, Tokens: int(c.Kept)}
	var tail []cost.Block
	for n := range steps {
		fresh++
		if n%every == 0 {
			tail = []cost.Block{{Hash: fresh << 1, Tokens: int(c.After - c.Kept - c.Growth)}}
		}
		tail = append(tail, cost.Block{Hash: fresh<<1 + 1, Tokens: int(c.Growth)})
		blocks := append([]cost.Block{head}, tail...)
		in, _ := l.Bill(cost.Request{Blocks: blocks, Marks: []int{0, len(blocks) - 2, len(blocks) - 1}}).Cost(r)
		sum += in
	}
	return sum / steps
}

// TestExpiry: where a cycle may end for nothing, waiting is worth a little more;
// the figures are reckoned by hand from u − 1 + e^(−u) = h²·A/(r·g), with 12,880
// for A.
func TestExpiry(t *testing.T) {
	r := cost.Rates{Write: 1.25, Read: 0.1}
	for _, test := range []struct{ expiry, steps float64 }{
		{0, 17.94}, {0.001, 18.00}, {0.03, 19.71}, {0.1, 25.30}, {1, 162},
	} {
		c := cost.Cycle{Growth: 800, After: 20_000, Kept: 8_000, ExpiryChance: test.expiry}
		near(t, "steps", c.Steps(r), test.steps, 0.001)
	}
	// What a step brings is not written once more: with 6,000 of the 12,000 new,
	// A is 6,900.
	c := cost.Cycle{Growth: 800, After: 20_000, Kept: 8_000, Uncached: 6_000}
	near(t, "steps", c.Steps(r), math.Sqrt(2*6_900/80.0), 1e-9)
	// Where all of it is new, every step may compact.
	c.Uncached = 30_000
	if got := c.Steps(r); got != 1 {
		t.Errorf("with nothing to rewrite: %v steps", got)
	}
}

// TestExpiryIsTheOptimum: no other number of steps has a lower mean, reckoned
// step by step over the cycles that end early.
func TestExpiryIsTheOptimum(t *testing.T) {
	r := cost.Rates{Write: 1.25, Read: 0.1}
	for _, growth := range []float64{300, 800, 2_000} {
		for _, h := range []float64{0.005, 0.02, 0.05, 0.1} {
			c := cost.Cycle{Growth: growth, After: 20_000, Kept: 8_000, ExpiryChance: h}
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
			steps := c.Steps(r)
			if math.Abs(steps-float64(at)) > 1 {
				t.Errorf("growth %v, expiry %v: %.1f steps, the best are %d", growth, h, steps, at)
			}
			near(t, "cost at the law's number of steps", mean(int(math.Round(steps))), best, 0.003)
		}
	}
}

// TestBreakEven: at that number of steps what is freed has saved as much in reading as
// writing the rest cost, and on a cold cache at once.
func TestBreakEven(t *testing.T) {
	r := cost.Rates{Write: 1.25, Read: 0.10}
	for _, freed := range []float64{10, 37, 50, 90} {
		n := cost.BreakEven(r, int(freed), 100, false)
		if saved, written := r.Read*freed*n, (r.Write-r.Read)*(100-freed); math.Abs(saved-written) > 1e-9 {
			t.Errorf("%v of 100 tokens, %.1f steps: %v saved, %v spent", freed, n, saved, written)
		}
	}
	if n := cost.BreakEven(r, 5, 100, true); n != 0 {
		t.Errorf("cold: %.1f steps", n)
	}
	if n := cost.BreakEven(r, 0, 100, true); !math.IsInf(n, 1) {
		t.Errorf("nothing freed: %.1f steps", n)
	}
}

// TestRates: a model's rates are its prices over that of its input; a model
// without a cache has no cheaper reads.
func TestRates(t *testing.T) {
	m := token.Model{Prices: []token.Price{{Input: 4, Output: 20, CacheRead: 0.4, CacheWrite: 5}}, Cache: token.Cache{Match: "breakpoint"}}
	if r, ok := cost.RatesOf(m, 1_000); !ok || r != (cost.Rates{Write: 1.25, Read: 0.1, Output: 5}) {
		t.Errorf("%+v, %v", r, ok)
	}
	m.Cache = token.Cache{}
	if r, ok := cost.RatesOf(m, 1_000); !ok || r.Read != 1 {
		t.Errorf("without a cache: %+v, %v", r, ok)
	}
	if _, ok := cost.RatesOf(token.Model{}, 1_000); ok {
		t.Error("a model without prices has rates")
	}
	for _, m := range token.Models().All() {
		if r, ok := cost.RatesOf(m, 1_000); ok && (r.Read <= 0 || r.Read > 1 || r.Write < 1 || r.Output < 1) {
			t.Errorf("%s: %+v", m.Name, r)
		}
	}
}

func blocks(hashes ...uint64) []cost.Block {
	var out []cost.Block
	for _, h := range hashes {
		out = append(out, cost.Block{Hash: h, Tokens: 100})
	}
	return out
}

// TestLedger follows the rules of the caches one by one.
func TestLedger(t *testing.T) {
	breakpoint := token.Cache{Match: "breakpoint", Marks: 2, Lookback: 3, Minimum: 150}
	prefix := token.Cache{Match: "prefix", Minimum: 150}
	type step struct {
		at     time.Duration
		blocks []cost.Block
		marks  []int
		want   cost.Bill
	}
	for _, test := range []struct {
		name  string
		cache token.Cache
		ttl   time.Duration
		steps []step
	}{
		{"no cache", token.Cache{}, 0, []step{
			{0, blocks(1, 2), []int{1}, cost.Bill{Plain: 200}},
			{0, blocks(1, 2), []int{1}, cost.Bill{Plain: 200}},
		}},
		{"marks", breakpoint, 0, []step{
			{0, blocks(1, 2, 3), []int{1}, cost.Bill{Write: 200, Plain: 100}},
			{0, blocks(1, 2, 3, 4), []int{1, 3}, cost.Bill{Read: 200, Write: 200}},
			{0, blocks(1, 2, 3, 4), []int{2}, cost.Bill{Read: 200, Write: 100, Plain: 100}}, // 3 alone was never marked
			{0, blocks(1, 2, 9), []int{2}, cost.Bill{Read: 200, Write: 100}},
			{0, blocks(9, 2, 3), []int{1, 2}, cost.Bill{Write: 300}},
		}},
		{"a mark looks back so far", breakpoint, 0, []step{
			{0, blocks(1, 2), []int{1}, cost.Bill{Write: 200}},
			{0, blocks(1, 2, 3, 4), []int{3}, cost.Bill{Read: 200, Write: 200}},
			{0, blocks(1, 2, 5, 6, 7), []int{4}, cost.Bill{Write: 500}},
		}},
		{"marks beyond the limit do not count", breakpoint, 0, []step{
			{0, blocks(1, 2, 3, 4), []int{1, 2, 3}, cost.Bill{Write: 400}},
			{0, blocks(1, 2, 9), []int{1}, cost.Bill{Write: 200, Plain: 100}},
		}},
		{"too short to be kept", breakpoint, 0, []step{
			{0, blocks(1), []int{0}, cost.Bill{Plain: 100}},
			{0, blocks(1, 2), []int{0, 1}, cost.Bill{Write: 200}},
		}},
		{"forgotten, and every read begins anew", breakpoint, time.Minute, []step{
			{0, blocks(1, 2), []int{1}, cost.Bill{Write: 200}},
			{time.Minute, blocks(1, 2), []int{1}, cost.Bill{Read: 200}},
			{2 * time.Minute, blocks(1, 2), []int{1}, cost.Bill{Read: 200}},
			{3*time.Minute + 1, blocks(1, 2), []int{1}, cost.Bill{Write: 200}},
		}},
		{"prefix", prefix, 0, []step{
			{0, blocks(1, 2, 3), nil, cost.Bill{Write: 300}},
			{0, blocks(1, 2, 4), nil, cost.Bill{Read: 200, Write: 100}},
			{0, blocks(1, 2, 3, 5), nil, cost.Bill{Read: 300, Write: 100}},
			{0, blocks(1, 7, 3), nil, cost.Bill{Write: 300}},
		}},
	} {
		l := cost.NewLedger(test.cache, test.ttl)
		for n, s := range test.steps {
			got := l.Bill(cost.Request{Blocks: s.blocks, Marks: s.marks, At: s.at})
			if got != s.want {
				t.Errorf("%s: request %d is billed %+v, want %+v", test.name, n, got, s.want)
			}
			if total := 100 * len(s.blocks); got.Input() != total {
				t.Errorf("%s: request %d: %d tokens of %d are billed", test.name, n, got.Input(), total)
			}
		}
	}
}

// TestSchedule finds the best of all schedules, told by trying each.
func TestSchedule(t *testing.T) {
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
	compact, least := cost.Schedule(n, segment)
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
