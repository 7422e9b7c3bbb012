package eval

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/token"
)

// curved is a column of made figures.
func curved(name string, sessions []*references.Session, recalls ...float64) *column {
	b, err := parseBudget(name)
	if err != nil {
		panic(err)
	}
	c := newColumn(b)
	c.sessions = sessions
	for _, r := range recalls {
		c.tallies[references.BestSimple] = append(c.tallies[references.BestSimple], tally{needs: 10, bound: 10 * r, lookup: 10})
		c.tallies[references.AutoName] = append(c.tallies[references.AutoName], tally{needs: 10, bound: 10, lookup: 10})
	}
	return c
}

// TestArea: the area is over the logarithm of the budget, of sessions that have
// all budgets alone, for each kind of budgets by itself (benchmarks 6a.7).
func TestArea(t *testing.T) {
	a, b, c := &references.Session{Name: "a"}, &references.Session{Name: "b"}, &references.Session{Name: "c"}
	// In doublings: from 2k to 4k is one, from 4k to 32k are three.
	all := areas([]*column{
		curved("32k", []*references.Session{b, a}, 1, 1), curved("2k", []*references.Session{a, b, c}, 0, 0.2, 1), curved("4k", []*references.Session{a, b}, 0.5, 0.6),
		curved("10%", []*references.Session{a}, 0), curved("20%", []*references.Session{a}, 1),
	})
	if len(all) != 1 || all[0].Sessions != 2 || all[0].Name != "Area over 2k, 4k, 32k" {
		t.Fatalf("%+v", all)
	}
	first := (0.25*1 + 0.75*3) / 4
	second := (0.4*1 + 0.8*3) / 4
	for _, s := range all[0].Scores {
		switch s.Contender {
		case references.AutoName:
			if s.Bound != 1 || s.Ahead != nil {
				t.Errorf("%+v", s)
			}
		case references.BestSimple:
			if want := (first + second) / 2; math.Abs(s.Bound-want) > 1e-9 || s.Lookup != 1 || math.Abs(s.Ahead.Mean-(1-want)) > 1e-9 {
				t.Errorf("%+v, want %.4f", s, want)
			}
		}
	}
}

// TestGaps: lognormal gaps have the median and the tail that they are said to
// have, and are the same each time (benchmarks 6b).
func TestGaps(t *testing.T) {
	s := &references.Session{Name: "s"}
	draw := func(model string) []time.Duration {
		next, recorded := gapsOf(s, model)
		if recorded != (model == "" || model == RecordedGaps) {
			t.Errorf("%q: recorded times %v", model, recorded)
		}
		all := make([]time.Duration, 20_000)
		for i := range all {
			all[i] = next()
		}
		return all
	}
	all := draw(LognormalGaps)
	if !slices.Equal(all, draw(LognormalGaps)) {
		t.Error("the same session has other gaps")
	}
	slices.Sort(all)
	if m := all[len(all)/2].Seconds(); m < 6.5 || m > 7.5 {
		t.Errorf("the median is %.1f s", m)
	}
	cold, _ := slices.BinarySearch(all, 5*time.Minute)
	if share := 1 - float64(cold)/float64(len(all)); share < 0.025 || share > 0.035 {
		t.Errorf("%.3f of the gaps are beyond five minutes", share)
	}
	for _, model := range []string{"", FixedGaps} {
		if got := draw(model); got[0] != defaultGap || got[1] != defaultGap {
			t.Errorf("%q: %v", model, got[:2])
		}
	}
}

// TestGapsAreBilled: what is drawn decides what the cache has forgotten, whatever
// the record tells.
func TestGapsAreBilled(t *testing.T) {
	counter := counterOf(t)
	r := worked(t, counter, 200, 50, 100, 150)
	m, err := token.Models().Find(defaultCostModel)
	if err != nil {
		t.Fatal(err)
	}
	cold := func(gaps string) (n int) {
		for _, a := range newReplay(r.Session, m, gaps, counter).requests {
			if a.cold {
				n++
			}
		}
		return n
	}
	if n := cold(RecordedGaps); n != 3 {
		t.Errorf("%d cold requests by the record, want 3", n)
	}
	if n := cold(FixedGaps); n != 0 {
		t.Errorf("%d cold requests at fixed gaps", n)
	}
	if n := cold(LognormalGaps); n == 0 || n > 20 {
		t.Errorf("%d of 200 requests are cold at lognormal gaps", n)
	}
}

// TestCostCurve: contenders of one line differ in their size, and the cheapest of
// each line that recalls enough is named (benchmarks 6b, headline chart).
func TestCostCurve(t *testing.T) {
	counter := counterOf(t)
	set := &references.Set{Counter: counter, Sessions: []*references.Session{worked(t, counter, 60).Session}}
	r, err := Cost(t.Context(), set, &CostOptions{Curve: true, Contenders: []string{slidingName, references.AutoName}})
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]CostRow{}
	lines := map[string]int{}
	for i, row := range r.Rows {
		at[row.Contender] = row
		lines[row.Line]++
		if i > 0 && row.Line != "" && lines[row.Line] > 1 && r.Rows[i-1].Line != row.Line {
			t.Errorf("%s does not stand with its line", row.Contender)
		}
		if row.Bound < 1 {
			t.Errorf("%s costs %.3f of the lower bound", row.Contender, row.Bound)
		}
	}
	if lines[slidingLine] != 1+len(curveLeft) || lines[references.AutoName] != 1+len(curveLeft)+len(curveMore) || lines[clearLine] != 0 {
		t.Errorf("the lines are %v", lines)
	}
	if small, large := at["sliding window of 8k"], at["sliding window of 48k"]; small.Mean >= large.Mean {
		t.Errorf("a window of 8k sends %.0f tokens, one of 48k %.0f", small.Mean, large.Mean)
	}
	if small, large := at["auto, 8k left"], at["auto, 48k left"]; small.Mean >= large.Mean || small.Ahead == nil {
		t.Errorf("auto at 8k sends %.0f tokens, at 48k %.0f", small.Mean, large.Mean)
	}
	none, uncached := at[noneName], at[noCacheName]
	if none.Input != 1 || uncached.Input < 2 {
		t.Errorf("no compaction costs %.3f, without a cache %.3f", none.Input, uncached.Input)
	}
	var table strings.Builder
	if err := r.WriteTable(&table, true); err != nil || !strings.Contains(table.String(), "auto, 8k left") {
		t.Errorf("%v\n%s", err, &table)
	}
	fits(t, table.String())
	if _, err := Cost(t.Context(), set, &CostOptions{Gaps: "often"}); err == nil {
		t.Error("an unknown model of gaps is taken")
	}
}

// TestIsoRecall: the cheapest of a line counts, with its fetches.
func TestIsoRecall(t *testing.T) {
	r := &CostReport{Rows: []CostRow{
		{Contender: "a8", Line: "a", Refs: 1, Recall: 0.94, All: 0.1}, {Contender: "a16", Line: "a", Refs: 1, Recall: 0.95, All: 0.3, Input: 0.2},
		{Contender: "a32", Line: "a", Refs: 1, Recall: 0.99, All: 0.2, Input: 0.25}, {Contender: "b", Line: "b", Refs: 1, Recall: 0.96, All: 0.15},
		{Contender: "c", Line: "c", Refs: 0, Recall: 1, All: 0.01}, {Contender: "bound", Recall: 1},
	}}
	if r.findCheapest(); strings.Join(r.Iso, " ") != "b a32" {
		t.Errorf("%v", r.Iso)
	}
}
