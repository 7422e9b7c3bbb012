package eval

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// WriteTable writes the report for people, in 80 columns: what each contender
// recalls at each budget, and with details all that was measured.
func (r *Report) WriteTable(w io.Writer, details bool) error {
	var b strings.Builder
	if len(r.Columns) == 0 {
		fmt.Fprintf(&b, "Nothing could be measured in %s (%s). A conversation\n", plural(r.Read, "conversation"), r.Split)
		b.WriteString("counts from 10,000 tokens on, where its history is larger than the budget and the\nagent writes again what it read earlier. What stands in several conversations\ndoes not count, so copies of one leave nothing. Shorter conversations count as a\nfamily, at least 20 in one folder. Try more files, or --budgets 2k,10%.\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	r.summary(&b)
	for _, a := range r.Areas {
		a.area(&b)
	}
	for _, c := range r.Columns {
		c.write(&b, details)
	}
	if !details {
		b.WriteString("\nAll that was measured, and recall by type, age, origin and state: --details.\nWhat the words mean: --help.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary writes one row for each contender and two figures for each budget.
func (r *Report) summary(b *strings.Builder) {
	fmt.Fprintf(b, "Recall: of what the agent writes again, the share that stands in the prompt, and\nafter the slash, with one lookup. %s measured of %d (%s),\n%s tokens, corpus %s.\n\n",
		plural(r.Sessions, "conversation"), r.Read, r.Split, r.Counter, r.Corpus)
	g := texttable.Table{Head: []string{"contender"}}
	over := false
	for _, c := range r.Columns {
		g.Head = append(g.Head, c.Name)
	}
	for _, name := range r.Contenders() {
		row := []string{name}
		for _, c := range r.Columns {
			s, ran := c.Score(name)
			cell := fmt.Sprintf("%.2f/%.2f", s.Bound, s.Lookup)
			if s.Over >= 0.5 {
				cell, over = "("+cell+")", true
			}
			if s.Failed >= 0.5 {
				cell = "not made"
			}
			if !ran {
				cell = "-"
			}
			row = append(row, cell)
		}
		g.Row(row...)
	}
	g.Write(b)
	if over {
		b.WriteString("In brackets: at least half of the prompts are beyond the budget.\n")
	}
}

func (d *Interval) signed() string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%+.3f (%+.3f…%+.3f)", d.Mean, d.Low, d.High)
}

// brief is the difference in two decimals, with its interval where there is one.
func (d *Interval) brief(sessions int) string {
	if sessions < 2 {
		return fmt.Sprintf("%+.2f", d.Mean)
	}
	return fmt.Sprintf("%+.2f (%+.2f…%+.2f)", d.Mean, d.Low, d.High)
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// area writes the column of an area.
func (c *Column) area(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s, as a mean recall: %s with moments at all of them\n\n", c.Name, plural(c.Sessions, "conversation"))
	g := texttable.Table{Head: []string{"contender", "bound", "95 %", "lookup", "auto minus it"}}
	for _, s := range c.Scores {
		ahead := "-"
		if s.Ahead != nil {
			ahead = s.Ahead.brief(c.Sessions)
		}
		g.Row(s.Contender, fmt.Sprintf("%.3f", s.Bound), fmt.Sprintf("%.2f…%.2f", s.Low, s.High), fmt.Sprintf("%.3f", s.Lookup), ahead)
	}
	g.Write(b)
}

// write writes one budget.
func (c *Column) write(b *strings.Builder, details bool) {
	fmt.Fprintf(b, "\n%s: %s, %s, %s of %d identifiers used (%.0f %%)\n\n", c.Name,
		plural(c.Sessions, "conversation"), plural(c.Moments, "moment"), plural(c.Eligible, "reference"), c.Used, 100*c.Share)
	three := func(x float64) string { return fmt.Sprintf("%.3f", x) }
	two := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	g := texttable.Table{Head: []string{"contender", "bound", "95 %", "lookup", "minus best simple"}}
	var over, failed []string
	for _, s := range c.Scores {
		interval := "-"
		if c.Sessions > 1 {
			interval = fmt.Sprintf("%.2f…%.2f", s.Low, s.High)
		}
		g.Row(s.Contender, three(s.Bound), interval, three(s.Lookup), (&Interval{s.Best, s.BestLow, s.BestHigh}).brief(c.Sessions))
		if s.Over > 0 && s.Contender != "identity" {
			over = append(over, fmt.Sprintf("%s %.0f %%", s.Contender, 100*s.Over))
		}
		if s.Failed > 0 {
			failed = append(failed, fmt.Sprintf("%s %.0f %%", s.Contender, 100*s.Failed))
		}
	}
	g.Write(b)
	texttable.List(b, "Prompts beyond the budget: ", over)
	texttable.List(b, "Prompts that were not made: ", failed)
	if c.Sessions == 1 {
		b.WriteString("One conversation has no interval.\n")
	}
	if !details {
		return
	}
	b.WriteByte('\n')
	g = texttable.Table{Head: []string{"contender", "direct", "strict", "first", "pointer", "adj", "gap", "auto minus it", "trail", "t.prec", "t.recall", "full", "over", "worst", "fail",
		"said", "refs", "end", "refs", "stale", "values", "s.lines", "lines", "s.files"}}
	for _, s := range c.Scores {
		trail, precision, recall := "-", "-", "-"
		if s.Files > 0 {
			trail, precision, recall = three(s.Trail), three(s.TrailPrecision), three(s.TrailRecall)
		}
		g.Row(s.Contender, three(s.Direct), three(s.Strict), three(s.First), three(s.Pointer), two(s.Adjusted), two(s.Gap), s.Ahead.signed(),
			trail, precision, recall, two(s.Full), two(s.Over), two(s.Worst), two(s.Failed),
			three(s.Said), fmt.Sprint(s.Answers), three(s.End), fmt.Sprint(s.Ends), three(s.Stale), fmt.Sprint(s.Values), three(s.StaleLines), fmt.Sprint(s.Lines), three(s.StaleFiles))
	}
	g.Write(b)
	c.strata(b)
}

// strata writes the bound recall of the best simple contender and of auto by kind
// of reference.
func (c *Column) strata(b *strings.Builder) {
	simple, _ := c.Score(references.BestSimple)
	ours, _ := c.Score(references.AutoName)
	best, auto := simple.Strata, ours.Strata
	b.WriteByte('\n')
	g := texttable.Table{Head: []string{c.Name + ", all references", "references", references.BestSimple, references.AutoName, "with lookup"}}
	place := func(name string) int {
		return slices.IndexFunc(references.Ages, func(a references.AgeRange) bool { return name == "age "+a.Name })
	}
	names := slices.SortedFunc(maps.Keys(best), func(a, b string) int {
		if i, j := place(a), place(b); i >= 0 && j >= 0 {
			return i - j
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		g.Row(name, fmt.Sprint(best[name].Needs), fmt.Sprintf("%.3f", best[name].Bound), fmt.Sprintf("%.3f", auto[name].Bound), fmt.Sprintf("%.3f", auto[name].Lookup))
	}
	g.Write(b)
}
