package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// beginning is a situation in which nothing has been said yet, with the usual
// prices.
func beginning(window, output, fixed int) *Situation {
	return &Situation{Thread: thread.New("t"), Base: &prompt.Prompt{}, Window: window, Output: output, Fixed: fixed, Rates: token.UsualRates()}
}

// TestMarks: when each favor compacts and what it keeps, by window. With usual
// prices 500 tokens a step are expected, so that the law puts the mark of 20,000 at
// 20,000 + sqrt(2·1.15·19,500/(0.1·500))·500 = 34,974.
func TestMarks(t *testing.T) {
	for _, test := range []struct {
		favor         Favor
		window, fixed int
		mark, target  int
		soft          int
		priced        bool
	}{
		{FavorQuality, 1_000_000, 0, 800_000, 400_000, 750_000, false},
		{FavorQuality, 200_000, 0, 160_000, 80_000, 150_000, false},
		{FavorQuality, 32_000, 0, 25_600, 12_800, 24_000, false},
		{FavorQuality, 200_000, 90_000, 178_000, 134_000, 172_500, false}, // shares of 110,000 for messages

		{FavorBalanced, 1_000_000, 0, 64_000, 32_000, 64_000, true},
		{FavorBalanced, 200_000, 0, 64_000, 32_000, 64_000, true},
		{FavorBalanced, 200_000, 10_000, 64_000, 37_000, 64_000, true}, // half of 54,000 for messages
		{FavorBalanced, 200_000, 30_000, 64_974, 50_000, 64_974, true}, // 20,000 of messages, by the law
		{FavorBalanced, 128_000, 0, 57_600, 28_800, 57_600, true},
		{FavorBalanced, 100_000, 20_000, 56_000, 40_000, 56_000, true}, // 45 % and 50 % of 80,000
		{FavorBalanced, 52_000, 21_000, 48_900, 36_500, 44_250, false}, // 90 %, 50 % and 75 % of 31,000
		{FavorBalanced, 100_000, 0, 45_000, 22_500, 45_000, true},
		{FavorBalanced, 32_000, 0, 28_800, 16_000, 24_000, false}, // half of it is less than 20,000
		{FavorBalanced, 8_000, 0, 7_200, 4_000, 6_000, false},
		{FavorBalanced, 0, 0, 64_000, 0, 0, true},
		{"", 200_000, 0, 64_000, 32_000, 64_000, true},
		{"speed", 200_000, 0, 64_000, 32_000, 64_000, true},

		{FavorCost, 1_000_000, 0, 34_974, 20_000, 34_974, true},
		{FavorCost, 200_000, 0, 34_974, 20_000, 34_974, true},
		{FavorCost, 200_000, 30_000, 64_974, 50_000, 64_974, true},
		{FavorCost, 32_000, 0, 28_800, 16_000, 24_000, false},
		{FavorCost, 8_000, 0, 7_200, 4_000, 6_000, false},
	} {
		m := Auto{Favor: test.favor}.Marks(beginning(test.window, 0, test.fixed))
		if m.Mark != test.mark || m.Target != test.target || m.Soft != test.soft || m.Priced != test.priced {
			t.Errorf("%s, window %d, %d around: %+v, want mark %d, target %d, soft %d, priced %v", test.favor, test.window, test.fixed, m, test.mark, test.target, test.soft, test.priced)
		}
	}
}

// TestMarkMoves: where a compaction did not reach its target, the next one waits until a quarter of the room for
// messages is in use again, or, where less than that is free, as long as the request fits.
func TestMarkMoves(t *testing.T) {
	for _, test := range []struct {
		name          string
		window, fixed int
		reached, mark int
	}{
		{"the target was reached", 200_000, 0, 32_000, 64_000},
		{"a quarter of 64,000 over what was reached", 200_000, 0, 60_000, 76_000},
		{"a quarter of a room of 40,000", 60_000, 20_000, 49_000, 59_000},
		{"a quarter of it is less than the mark", 60_000, 20_000, 41_000, 54_974},
		{"less than a quarter is free", 60_000, 20_000, 50_500, 60_000},
		{"no window is known", 0, 0, 60_000, 76_000},
	} {
		s := beginning(test.window, 0, test.fixed)
		for _, drops := range [][]plan.Removal{{{}}, nil} { // nil: it was undone
			s.Current = &plan.Plan{Drops: drops, CompactedTokens: test.reached}
			if m := (Auto{}).Marks(s); m.Mark != test.mark {
				t.Errorf("%s: the mark is %d after %d, want %d", test.name, m.Mark, test.reached, test.mark)
			}
		}
	}
}

// TestMarksBounds: the budget is the limit where it is set; without prices the
// hard mark alone counts; a cold cache brings down the mark of cost, and that of
// balanced to three quarters; and what is set goes before what the favor says.
func TestMarksBounds(t *testing.T) {
	with := func(change func(*Situation)) *Situation {
		s := beginning(220_000, 20_000, 0)
		change(s)
		return s
	}
	budget := func(s *Situation) { s.Budget = 40_000 }
	unpriced := func(s *Situation) { s.Rates = token.Rates{} }
	cold := func(s *Situation) { s.CacheExpired = true }
	same := func(*Situation) {}
	for _, test := range []struct {
		auto         Auto
		change       func(*Situation)
		mark, target int
	}{
		{Auto{Favor: FavorQuality}, budget, 32_000, 16_000},
		{Auto{}, budget, 34_974, 20_000}, // beyond 45 %, since half of the budget may stay
		{Auto{Favor: FavorCost}, budget, 34_974, 20_000},
		{Auto{Favor: FavorQuality}, unpriced, 160_000, 80_000},
		{Auto{}, unpriced, 180_000, 100_000},
		{Auto{Favor: FavorCost}, unpriced, 180_000, 100_000},
		{Auto{Favor: FavorQuality}, cold, 160_000, 80_000},
		{Auto{}, cold, 48_000, 32_000},
		{Auto{Favor: FavorCost}, cold, 21_000, 20_000},
		{Auto{Favor: FavorQuality, Hard: 0.95}, same, 190_000, 95_000},
		{Auto{Favor: FavorQuality, Target: 0.2}, same, 160_000, 40_000},
		{Auto{Favor: FavorQuality, Working: 30_000}, same, 160_000, 30_000},
		{Auto{Hard: 0.3}, same, 60_000, 32_000},
		{Auto{Target: 0.1}, same, 64_000, 20_000},
		{Auto{Working: 8_000}, same, 64_000, 8_000},
		{Auto{Working: 60_000}, same, 86_158, 60_000},
		{Auto{Hard: 0.3, Target: 0.3, Working: 100_000}, same, 60_000, 30_000},
		{Auto{Favor: FavorCost, Hard: 0.3, Target: 0.4}, unpriced, 60_000, 30_000},
	} {
		if m := test.auto.Marks(with(test.change)); m.Mark != test.mark || m.Target != test.target {
			t.Errorf("%+v: %+v, want mark %d and target %d", test.auto, m, test.mark, test.target)
		}
	}
}

// TestMarksOrder: whatever is set and whatever a step brings, what is left is less
// than the mark, the mark is at most the hard one, and that at most the limit; and
// Due and Soon go by them.
func TestMarksOrder(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		share := func(name string) float64 {
			return rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.01, 1)).Draw(t, name)
		}
		a := Auto{
			Favor: Favor(rapid.SampledFrom(append(Favors(), "")).Draw(t, "favor")), Hard: share("hard"), Target: share("target"),
			Working: rapid.OneOf(rapid.Just(0), rapid.IntRange(1, 300_000)).Draw(t, "working"),
		}
		words := strings.Repeat("go on ", rapid.IntRange(1, 3_000).Draw(t, "words"))
		th, err := thread.New("t").Append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: words}}})
		if err != nil {
			t.Fatal(err)
		}
		s := beginning(rapid.IntRange(1_000, 2_000_000).Draw(t, "window"), 0, rapid.IntRange(0, 60_000).Draw(t, "fixed"))
		s.Thread, s.PlainSizes = th, []int{len(words) / 6 * 2}
		s.Output = rapid.IntRange(0, s.Window/2).Draw(t, "output")
		if rapid.Bool().Draw(t, "bounded") {
			s.Budget = rapid.IntRange(1_000, 200_000).Draw(t, "budget")
		}
		if rapid.Bool().Draw(t, "unpriced") {
			s.Rates = token.Rates{}
		}
		s.CacheExpired = rapid.Bool().Draw(t, "cold")
		s.ExpiryChance = rapid.Float64Range(0, 1).Draw(t, "expiry")
		m := a.Marks(s)
		if !(m.Target < m.Mark && m.Mark <= m.Hard && m.Hard <= s.Limit() && m.Soft <= m.Mark) {
			t.Fatalf("%+v of %d: %+v", a, s.Limit(), m)
		}
		if written := a.Defaults().Marks(s); written != m {
			t.Fatalf("%+v, with the defaults written out %+v", m, written)
		}
		due := func(prompt int) bool { s.PromptTokens = prompt; yes, _ := a.Due(s); return yes }
		soon := func(prompt int) bool { s.PromptTokens = prompt; yes, _ := a.DueSoon(s); return yes }
		if due(m.Mark) || !due(m.Mark+1) || soon(m.Soft) || !soon(m.Soft+1) {
			t.Fatalf("%+v is not where it compacts", m)
		}
	})
}

// TestDueTellsTheLowerMark: a request that is over both marks is compacted for the one that is told before.
func TestDueTellsTheLowerMark(t *testing.T) {
	for want, s := range map[string]*Situation{
		"beyond 34974 costs more": beginning(200_000, 0, 0), "is over 28800 of 32000": beginning(32_000, 0, 0),
	} {
		s.PromptTokens = 190_000
		if due, why := (Auto{Favor: FavorCost}).Due(s); !due || !strings.Contains(why, want) {
			t.Errorf("%v, %q: want %q", due, why, want)
		}
	}
}
