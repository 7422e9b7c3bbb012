// Package htmlreport writes what package eval measured as one HTML page: plots,
// tables, and how each figure was made. The page needs no other file, network or script,
// and has a light and a dark theme. The same data give the same bytes.
package htmlreport

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest/lab/eval"
)

// Data is what a page shows. Parts that are nil are left out.
type Data struct {
	// Command is the command that made it, Note what the reader must know first, such as
	// that the run was canceled.
	Command string
	Note    string
	Recall  *eval.Report
	Cost    *eval.CostReport
	// Validity counts what the APIs would refuse.
	Validity *eval.ValidityReport
}

// auto is the contender that the plots point out, best the one to compare it with.
const (
	auto = "auto"
	best = "best simple"
)

// thousands writes a whole number with a narrow no-break space at each thousand.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// figure is a plot with its title.
type figure struct {
	title string
	plot  markup
}

// forestPlots are the recall of every contender at every budget, with intervals.
func (d *Data) forestPlots() []figure {
	var all []figure
	for i, c := range d.Recall.Columns {
		var rows []whisker
		for _, s := range c.Scores {
			rows = append(rows, whisker{s.Contender, s.Bound, s.Low, s.High, s.Contender == auto, s.Over >= 0.5, s.Failed >= 0.5})
		}
		title := "Bound recall at " + cutWords(c.Name)
		if c.Sessions > 1 {
			title += ", with 95 % intervals by conversation"
		}
		all = append(all, figure{title, forestPlot(fmt.Sprintf("recall%d", i), title, "bound recall", rows)})
	}
	return all
}

// costPlot is recall against cost: a line for each way that ran at several sizes.
func (d *Data) costPlot() markup {
	var curves []curve
	at := map[string]int{}
	for _, r := range d.Cost.Rows {
		if r.Refs == 0 || r.Input <= 0 {
			continue
		}
		line := cmp.Or(r.Line, r.Contender)
		i, ok := at[line]
		if !ok {
			i = len(curves)
			at[line] = i
			curves = append(curves, curve{name: line, strong: line == auto})
		}
		curves[i].spots = append(curves[i].spots, spot{name: r.Size, x: cmp.Or(r.All, r.Input), y: r.Recall})
	}
	for i := range curves {
		slices.SortStableFunc(curves[i].spots, func(a, b spot) int { return cmp.Compare(a.x, b.x) })
	}
	return frontierPlot("cost", "Recall with lookups against cost, for each way to compact", "cost of the input, lookups and re-reads in it, over that without compaction (log scale)", "recall with lookups", curves)
}

// tracedContenders are the contenders whose steps are drawn; more would hide each other.
var tracedContenders = []string{"no compaction", "mask all but 10 at every step", "sliding window of 20k", "clear all but 3 at 100k", "the agent as it ran", "20k left by the law, and when cold", auto}

// sizePlot are the prompts of one session, step by step.
func (d *Data) sizePlot() markup {
	return linePlot("sizes", "Size of the prompt at each request", "request", "tokens", 0, d.traces(func(t *eval.Trace) []float64 {
		out := make([]float64, len(t.Prompts))
		for i, n := range t.Prompts {
			out[i] = float64(n)
		}
		return out
	}))
}

// spendingPlot is the cost up to each step. What costs far more than no compaction leaves
// the picture.
func (d *Data) spendingPlot() markup {
	top := 0.0
	for _, t := range d.Cost.Traces {
		if t.Contender == "no compaction" && len(t.Spent) > 0 {
			top = 1.15 * t.Spent[len(t.Spent)-1]
		}
	}
	return linePlot("spending", "Cost of the input up to each request", "request", "tokens of uncached input", top, d.traces(func(t *eval.Trace) []float64 { return t.Spent }))
}

func (d *Data) traces(of func(*eval.Trace) []float64) []trace {
	var all []trace
	for _, name := range tracedContenders {
		for i := range d.Cost.Traces {
			if t := &d.Cost.Traces[i]; t.Contender == name {
				all = append(all, trace{name: name, strong: name == auto, values: of(t)})
			}
		}
	}
	return all
}
