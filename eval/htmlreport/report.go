// Package htmlreport writes what package eval measured as one HTML page: plots,
// tables and how each figure was made. The page stands alone: its pictures are
// SVG in it, it needs no network and no script, and it has a light and a dark
// dress. The same data give the same bytes.
package htmlreport

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/eval"
)

// Data is what a page shows. Parts that are nil are left out.
type Data struct {
	// Command is what made it, as a user would type it; Note what the reader must
	// know first, such as that the work was broken off.
	Command string
	Note    string
	Recall  *eval.Report
	Cost    *eval.CostReport
	Drift   *eval.DriftReport
	// Validity counts what the APIs would refuse.
	Validity *eval.ValidityReport
}

//go:embed page.html
var page string

// auto is the contender that the plots point out, best the one beside it.
const (
	auto = "auto"
	best = "best simple"
)

var funcs = template.FuncMap{
	"three":   func(x float64) string { return fmt.Sprintf("%.3f", x) },
	"two":     func(x float64) string { return fmt.Sprintf("%.2f", x) },
	"signed":  func(x float64) string { return fmt.Sprintf("%+.3f", x) },
	"percent": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
	"number":  thousands,
	"after":   func(values []float64, round int) float64 { return values[round-1] },
	"some": func(format string, x float64) string {
		if x == 0 {
			return "–"
		}
		return fmt.Sprintf(format, x)
	},
}

// Write writes the page.
func Write(w io.Writer, d *Data) error {
	t, err := template.New("page").Funcs(funcs).Parse(page)
	if err != nil {
		return fmt.Errorf("htmlreport.Write: %w", err)
	}
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("htmlreport.Write: %w", err)
	}
	return nil
}

// thousands writes a whole number with a thin space at each thousand.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Forests are the recall of every contender at every budget, with intervals.
func (d *Data) Forests() []template.HTML {
	var all []template.HTML
	for i, c := range d.Recall.Columns {
		var rows []whisker
		for _, s := range c.Scores {
			rows = append(rows, whisker{s.Contender, s.Bound, s.Low, s.High, s.Contender == auto})
		}
		title := "Bound recall at " + c.Name + ", with 95 % intervals by session"
		all = append(all, forest(fmt.Sprintf("recall%d", i), title, "bound recall", rows))
	}
	return all
}

// CostPlot is recall against cost.
func (d *Data) CostPlot() template.HTML {
	var places []place
	for _, r := range d.Cost.Rows {
		if r.Refs > 0 {
			places = append(places, place{r.Contender, r.Input, r.Recall, r.Contender == auto})
		}
	}
	return scatter("cost", "Recall with lookups against the cost of the input", "cost of the input, of that without compaction", "recall with lookups", places)
}

// traced are the contenders whose steps are drawn: more would hide each other.
var traced = []string{"no compaction", "mask all but 10 at every step", "sliding window of 20k", "clear all but 3 at 100k", "the agent as it ran", "20k left by the law, and when cold", auto}

// Sizes are the prompts of one session, step by step.
func (d *Data) Sizes() template.HTML {
	return lines("sizes", "Size of the prompt at each request", "request", "tokens", d.traces(func(t *eval.Trace) []float64 {
		out := make([]float64, len(t.Prompts))
		for i, n := range t.Prompts {
			out[i] = float64(n)
		}
		return out
	}))
}

// Spending is what they cost up to each step.
func (d *Data) Spending() template.HTML {
	return lines("spending", "Cost of the input up to each request", "request", "tokens of uncached input", d.traces(func(t *eval.Trace) []float64 { return t.Spent }))
}

func (d *Data) traces(of func(*eval.Trace) []float64) []trace {
	var all []trace
	for _, name := range traced {
		for i := range d.Cost.Traces {
			if t := &d.Cost.Traces[i]; t.Contender == name {
				all = append(all, trace{name: name, values: of(t)})
			}
		}
	}
	return all
}

// Decay is what is left of facts after each round of compaction.
func (d *Data) Decay() template.HTML {
	var all []trace
	for _, r := range d.Drift.Rows {
		steps := make([]float64, len(r.Canaries))
		for i := range steps {
			steps[i] = float64(i + 1)
		}
		all = append(all, trace{r.Contender, steps, r.Canaries})
	}
	return lines("decay", "Canaries that stand in the prompt after each compaction", "compactions", "share of the canaries", all)
}

// Kinds are the strata of a column by one property: type, age or origin.
type Kinds struct {
	Name string
	Plot template.HTML
	Rows []Kind
}

// Kind is how much of one kind of references was kept.
type Kind struct {
	Name               string
	Needs              int
	Best, Auto, Lookup float64
	// Missed are the references that auto did not keep bound, Share those of all
	// that it missed.
	Missed int
	Share  float64
}

// ages is the order of the ages.
var ages = []string{"1-5", "6-10", "11-20", "21-40", "over 40"}

// Kept says what was kept by type, age and origin, over all budgets.
func (d *Data) Kept() []Kinds {
	type sums struct{ needs, best, auto, lookup float64 }
	of := map[string]map[string]*sums{}
	for _, c := range d.Recall.Columns {
		for _, s := range c.Scores {
			for stratum, x := range s.Strata {
				property, name, _ := strings.Cut(stratum, " ")
				if of[property] == nil {
					of[property] = map[string]*sums{}
				}
				sum := of[property][name]
				if sum == nil {
					sum = &sums{}
					of[property][name] = sum
				}
				n := float64(x.Needs)
				switch s.Contender {
				case best:
					sum.best += n * x.Bound
				case auto:
					sum.needs += n
					sum.auto += n * x.Bound
					sum.lookup += n * x.Lookup
				}
			}
		}
	}
	var all []Kinds
	for _, property := range []string{"type", "age", "origin"} {
		k := Kinds{Name: property}
		missed := 0.0
		for _, name := range slices.Sorted(maps.Keys(of[property])) {
			s := of[property][name]
			if s.needs == 0 {
				continue
			}
			missed += s.needs - s.auto
			k.Rows = append(k.Rows, Kind{
				Name: name, Needs: int(s.needs), Best: s.best / s.needs, Auto: s.auto / s.needs, Lookup: s.lookup / s.needs,
				Missed: int(s.needs - s.auto + 0.5),
			})
		}
		if property == "age" {
			slices.SortFunc(k.Rows, func(a, b Kind) int { return cmp.Compare(slices.Index(ages, a.Name), slices.Index(ages, b.Name)) })
		}
		var groups []group
		for i := range k.Rows {
			r := &k.Rows[i]
			if missed > 0 {
				r.Share = (1 - r.Auto) * float64(r.Needs) / missed
			}
			groups = append(groups, group{fmt.Sprintf("%s (%d)", r.Name, r.Needs), []float64{r.Best, r.Auto, r.Lookup}})
		}
		if len(groups) == 0 {
			continue
		}
		k.Plot = bars("kept-"+property, "Bound recall by "+property+", over all budgets", []string{best, auto, "auto with a lookup"}, groups)
		all = append(all, k)
	}
	return all
}

// shownMisses bounds the examples of a page.
const shownMisses = 40

// Examples are some of what auto lost, one of each session and kind in turn.
func (d *Data) Examples() []eval.Miss {
	seen := map[string]bool{}
	var out []eval.Miss
	for _, m := range d.Recall.Misses {
		key := m.Session + "\x00" + m.Type + "\x00" + m.Origin
		if seen[key] || len(out) == shownMisses {
			continue
		}
		seen[key] = true
		m.Line = strings.Join(strings.Fields(strings.ToValidUTF8(m.Line, "")), " ")
		out = append(out, m)
	}
	return out
}
