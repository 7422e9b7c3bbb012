package eval

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// curveBudgets are the budgets of the area under the curve, Options.Curve.
var curveBudgets = []string{"2k", "4k", "8k", "16k", "32k", "5%", "10%", "20%", "40%"}

// minBudgets is how many budgets of a kind an area needs: the mean of two says no more
// than the two.
const minBudgets = 3

// areas are the area over budgets in tokens and the one over shares, where there are
// enough of them.
func areas(columns []*column) []Column {
	var all []Column
	for _, size := range []func(c *column) float64{
		func(c *column) float64 { return float64(c.tokens) },
		func(c *column) float64 { return c.share },
	} {
		kind := slices.DeleteFunc(slices.Clone(columns), func(c *column) bool { return c.family != "" || c.own || size(c) == 0 })
		slices.SortStableFunc(kind, func(a, b *column) int { return cmp.Compare(size(a), size(b)) })
		kind = slices.CompactFunc(kind, func(a, b *column) bool { return size(a) == size(b) })
		if len(kind) < minBudgets {
			continue
		}
		var at []float64
		for _, c := range kind {
			at = append(at, math.Log2(size(c)))
		}
		if a := area(kind, at); a.Sessions > 0 {
			all = append(all, a)
		}
	}
	return all
}

// area integrates over columns; at are their positions on the axis, in order.
func area(columns []*column, at []float64) Column {
	var a Column
	// places are where a session stands in each column.
	var places [][]int
	for _, s := range columns[0].sessions {
		var place []int
		for _, c := range columns {
			if i := slices.Index(c.sessions, s); i >= 0 {
				place = append(place, i)
			}
		}
		if len(place) == len(columns) {
			places = append(places, place)
		}
	}
	a.Sessions = len(places)
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	a.Name = "Area over " + strings.Join(names, ", ")
	if a.Sessions == 0 {
		return a
	}
	under := func(name string, recall func(tally) float64) []float64 {
		out := make([]float64, len(places))
		for n, place := range places {
			for k := 1; k < len(columns); k++ {
				left, right := recall(columns[k-1].tallies[name][place[k-1]]), recall(columns[k].tallies[name][place[k]])
				out[n] += (left + right) / 2 * (at[k] - at[k-1])
			}
			out[n] /= at[len(at)-1] - at[0]
		}
		return out
	}
	bound := func(t tally) float64 { return t.bound / t.needs }
	resample := newBootstrap(len(places))
	for _, name := range columns[0].order() {
		if slices.ContainsFunc(columns, func(c *column) bool { return len(c.tallies[name]) != len(c.sessions) }) {
			continue
		}
		x := under(name, bound)
		score := Score{Contender: name, Bound: mean(x), Lookup: mean(under(name, func(t tally) float64 { return t.lookup / t.needs }))}
		score.Low, score.High = resample.interval(x)
		if len(columns[0].tallies[references.AutoName]) > 0 && name != references.AutoName {
			d := resample.difference(under(references.AutoName, bound), x)
			score.Ahead = &d
		}
		a.Scores = append(a.Scores, score)
	}
	return a
}
