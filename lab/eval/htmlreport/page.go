package htmlreport

import (
	_ "embed" // what is the same on every page
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval"
)

// The beginning and the end of every page. Code writes the rest: templates of the
// standard library call methods by name, and so keep every method of every type in the
// program, a tenth of its size.
var (
	//go:embed head.html
	head string
	//go:embed foot.html
	foot string
)

// Write writes the page.
func Write(w io.Writer, d *Data) error {
	p := &page{}
	p.WriteString(head)
	p.lead(d)
	if d.Cost != nil {
		p.frontier(d)
	}
	if d.Recall != nil {
		p.recall(d)
		p.kept(d)
		p.examples(d.exampleMisses())
	}
	if d.Cost != nil {
		p.cost(d)
	}
	if d.Validity != nil {
		p.validity(d.Validity)
	}
	p.WriteString(foot)
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("htmlreport.Write: %w", err)
	}
	return nil
}

// markup is HTML; all other text is escaped when it is written.
type markup string

// page is a page that is being written.
type page struct{ strings.Builder }

// printf writes a format, which is markup, and escapes strings among its arguments.
func (p *page) printf(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case markup:
		case string:
			args[i] = html.EscapeString(arg)
		case fmt.Stringer:
			args[i] = html.EscapeString(arg.String())
		}
	}
	fmt.Fprintf(p, format, args...)
}

// quoted is a cell with a text of a conversation.
type quoted string

// table writes a table with a row for each of rows; strong ones stand out.
func table[R any](p *page, heads []string, rows []R, cells func(R) (strong bool, cells []any)) {
	p.printf("<div class=\"wide\"><table>\n<thead><tr>")
	for _, h := range heads {
		p.printf(`<th scope="col">%s</th>`, h)
	}
	p.printf("</tr></thead>\n<tbody>")
	for _, r := range rows {
		strong, cells := cells(r)
		class := markup("")
		if strong {
			class = ` class="auto"`
		}
		p.printf("<tr%s>", class)
		for _, c := range cells {
			if c, ok := c.(quoted); ok {
				p.printf(`<td class="words"><code>%s</code></td>`, string(c))
				continue
			}
			p.printf("<td>%v</td>", c)
		}
		p.printf("</tr>\n")
	}
	p.printf("</tbody></table></div>\n")
}

// plot writes a picture with a caption above it.
func (p *page) plot(caption, picture markup) {
	p.printf("<figure><figcaption>%s</figcaption><div class=\"wide\">%s</div></figure>\n", caption, picture)
}

// markupf is markup with its arguments escaped.
func markupf(format string, args ...any) markup {
	p := &page{}
	p.printf(format, args...)
	return markup(p.String())
}

func (p *page) lead(d *Data) {
	if d.Note != "" {
		p.printf("<p class=\"note\"><strong>%s</strong></p>\n", d.Note)
	}
	of, costs := "Recorded conversations of agents were", ""
	switch n := d.conversations(); n {
	case 0:
	case 1:
		of = "A recorded conversation of an agent was"
	default:
		of = fmt.Sprintf("%d recorded conversations of agents were", n)
	}
	if d.Cost != nil {
		costs = ", and what the conversations would have cost"
	}
	p.printf(`<p>%s given to several ways to make a long history fit a model's window, without
asking a model. This page shows how much of what the agent wrote again later was still there%s. Replay is open-loop: what the agent did is taken from the record and does not react to what it is shown, so nothing here says how many tasks
are solved.</p>
<p class="soft small-only">Wide plots and tables scroll sideways.</p>
`, of, costs)
	if all := d.leadSentences(); len(all) > 0 {
		p.printf(`<div class="lead"><p><strong>In short</strong></p><ul>`)
		for _, s := range all {
			p.printf("<li>%s</li>", s)
		}
		p.printf("</ul></div>\n")
	}
	if d.Command != "" {
		p.printf("<pre>%s</pre>\n", d.Command)
	}
	if all := d.terms(); len(all) > 0 {
		p.printf("<details><summary>Who is compared, and what each does</summary><dl>")
		for _, t := range all {
			p.printf("<dt>%s</dt><dd>%s</dd>", t.name, t.meaning)
		}
		p.printf("</dl></details>\n")
	}
}

func (p *page) frontier(d *Data) {
	p.printf(`<h2>Recall against cost</h2>
<figure><div class="wide">%s</div><figcaption><strong>Up and to the left is better.</strong> Each line is one way to compact at several sizes, written at its points: tokens that are left,
tokens from which it acts, or results that are kept. Recall is over the references to what stood before the last compaction; the cost has in it what a lookup or reading again takes
for those that are gone. Ways in grey have a size of their own.</figcaption></figure>
<p>The cheapest of each way with a recall of at least 0.95:</p>
`, d.costPlot())
	cheapest := d.Cost.Cheapest()
	if len(cheapest) == 0 {
		p.printf("<p class=\"soft\">None of these reaches it.</p>\n")
		return
	}
	table(p, []string{"contender", "recall with lookups", "cost with fetches"}, cheapest, func(r eval.CostRow) (bool, []any) {
		return r.Line == auto, []any{r.Contender, fixed3(r.Recall), fixed3(r.All)}
	})
}

func (p *page) recall(d *Data) {
	r := d.Recall
	p.printf(`<h2>Recall</h2>
<p>%s (%s), %s tokens, corpus <code>%s</code>. A reference is an identifier that the agent wrote in a call of its next 20 steps and could
know from the old part of the history alone. It is <em>bound</em> when it stands in the prompt beside a word that tells what it is. With a lookup: or one search in what was taken out brings it.</p>
<p class="cap">Bound recall, and after the slash that with one lookup, at each budget</p>
`, plural(r.Sessions, "conversation"), r.Split, r.Counter, r.Corpus)
	heads := []string{"contender"}
	for _, c := range r.Columns {
		heads = append(heads, c.Name)
	}
	table(p, heads, r.Contenders(), func(name string) (bool, []any) {
		cells := []any{name}
		for _, c := range r.Columns {
			cells = append(cells, atBudget(c.Score(name)))
		}
		return name == auto, cells
	})
	p.printf("<p class=\"soft\">In brackets: at least half of the prompts are beyond the budget, so the figure is not one of that budget; in the plots below their points are hollow. Not made: at least half of the prompts, since the budget could not be met.</p>\n")
	for _, a := range r.Areas {
		p.printf("<p class=\"cap\">%s, as a mean recall: %s with moments at all of them</p>\n", a.Name, plural(a.Sessions, "conversation"))
		table(p, []string{"contender", "bound", "95 %", "with a lookup", "auto minus it"}, a.Scores, func(s eval.Score) (bool, []any) {
			return s.Contender == auto, []any{s.Contender, fixed3(s.Bound), span(s.Low, s.High), fixed3(s.Lookup), differenceText(s.Ahead)}
		})
	}
	for _, f := range d.forestPlots() {
		p.plot(markupf("<strong>%s</strong>", f.title), f.plot)
	}
	p.printf("<details><summary>All figures of recall, by budget</summary>\n")
	for _, c := range r.Columns {
		p.printf("<p class=\"cap\">%s: %s, %s, %s of %s identifiers used (%s)</p>\n", c.Name, plural(c.Sessions, "conversation"), plural(c.Moments, "moment"),
			plural(c.Eligible, "reference"), thousands(c.Used), percent(c.Share))
		table(p, []string{
			"contender", "bound", "95 %", "direct", "strict", "with a lookup", "best hit", "adjusted", "gap closed", "minus best simple", "auto minus it",
			"file trail, F1", "precision", "recall", "budget used", "over", "failed",
		}, c.Scores, func(s eval.Score) (bool, []any) {
			trail, precision, recall := "–", "–", "–"
			if s.Files > 0 {
				trail, precision, recall = fixed3(s.Trail), fixed3(s.TrailPrecision), fixed3(s.TrailRecall)
			}
			return s.Contender == auto, []any{s.Contender, fixed3(s.Bound), span(s.Low, s.High), fixed3(s.Direct), fixed3(s.Strict), fixed3(s.Lookup), fixed3(s.First), fixed2(s.Adjusted), fixed2(s.Gap),
				differenceText(&eval.Interval{Mean: s.Best, Low: s.BestLow, High: s.BestHigh}), differenceText(s.Ahead), trail, precision, recall, fixed2(s.Full), percent(s.Over), percent(s.Failed)}
		})
	}
	for _, c := range r.Columns {
		p.printf("<p class=\"cap\">%s: other measures</p>\n", c.Name)
		table(p, []string{
			"contender", "ideal use of pointers", "in answers", "references", "to the end", "references", "stale values", "values shown", "stale lines", "lines shown",
			"stale files", "worst overshoot",
		}, c.Scores, func(s eval.Score) (bool, []any) {
			return s.Contender == auto, []any{s.Contender, fixed3(s.Pointer), fixed3(s.Said), thousands(s.Answers), fixed3(s.End), thousands(s.Ends), percent(s.Stale), thousands(s.Values),
				percent(s.StaleLines), thousands(s.Lines), percent(s.StaleFiles), percent(s.Worst)}
		})
	}
	p.printf("</details>\n")
}

// atBudget is the recall of a contender at a budget; a dash when it did not run.
func atBudget(s eval.Score, ran bool) string {
	switch {
	case !ran:
		return "–"
	case s.Failed >= 0.5:
		return "not made"
	case s.Over >= 0.5:
		return "(" + fixed2(s.Bound) + " / " + fixed2(s.Lookup) + ")"
	}
	return fixed2(s.Bound) + " / " + fixed2(s.Lookup)
}

func (p *page) kept(d *Data) {
	all := d.keptByKind()
	if len(all) == 0 {
		return
	}
	p.printf("<h2>What was kept, and what was missed</h2>\n")
	for _, k := range all {
		p.plot(markupf("<strong>Bound recall by %s</strong>, over all references at all budgets; in brackets how many there are.", k.name), k.plot)
		p.printf("<details><summary>The figures by %s, and what auto missed</summary>\n", k.name)
		table(p, []string{k.name, "references", "best simple", "auto", "with a lookup", "missed by auto", "of all misses"}, k.rows, func(r kind) (bool, []any) {
			return false, []any{r.name, thousands(r.needs), fixed3(r.best), fixed3(r.auto), fixed3(r.lookup), thousands(r.missed), percent(r.share)}
		})
		p.printf("</details>\n")
	}
}

func (p *page) examples(misses []eval.Miss) {
	if len(misses) == 0 {
		return
	}
	p.printf("<details><summary>Examples of what auto missed</summary>\n")
	table(p, []string{"session", "budget", "step", "type", "value", "steps since", "seen", "last in", "by lookup", "where it stood"}, misses, func(m eval.Miss) (bool, []any) {
		lookup := "no"
		if m.Lookup {
			lookup = "yes"
		}
		return false, []any{m.Session, m.Budget, m.Step, m.Type, quoted(m.Value), m.Age, m.Mentions, m.LastRole + " " + m.LastTool, lookup, quoted(m.Line)}
	})
	p.printf("</details>\n")
}

func (p *page) cost(d *Data) {
	c := d.Cost
	around := ""
	if c.Around > 0 {
		around = "; system and tools\nare taken to be " + thousands(c.Around) + " tokens where none are recorded"
	}
	p.printf(`<h2>Cost</h2>
<p>%s of at least 50 000 tokens (%s), %s requests, corpus <code>%s</code>, billed by the prices and the prompt cache of %s (%s, %s)%s.</p>
`, plural(c.Sessions, "conversation"), c.Split, thousands(c.Requests), c.Corpus, c.Model, c.Date, c.Source, around)
	if c.Gaps != "" && c.Gaps != eval.RecordedGaps {
		p.printf("<p>The times between requests are %s, not those of the record.</p>\n", c.Gaps)
	}
	if len(c.Traces) > 0 {
		p.plot(markupf("<strong>Size of the prompt at each request</strong> of the largest conversation (%s), in tokens. Where a line falls, the history was compacted.", c.Traces[0].Session), d.sizePlot())
		p.plot("<strong>Cost of the input up to each request</strong> of the same conversation, in tokens of uncached input. A line that leaves the picture costs far more than no compaction.", d.spendingPlot())
	}
	p.printf("<p><em>Input</em> is what the prompts cost over what they cost without compaction in the same cache; less is cheaper.</p>\n")
	table(p, []string{
		"contender", "input", "95 %", "with fetches", "with answers", "recall, direct", "with lookups", "regret", "over the bound", "auto minus it, with fetches", "compactions",
		"rewrites per 100", "from cache", "prefix kept", "rewritten per freed", "mean prompt", "peak", "lookups", "re-reads",
	}, c.Rows, func(r eval.CostRow) (bool, []any) {
		return r.Contender == auto, []any{r.Contender, fixed3(r.Input), span(r.Low, r.High), figureOrDash("%.3f", r.All), figureOrDash("%.3f", r.Total), figureOrDash("%.3f", r.Direct), figureOrDash("%.3f", r.Recall), figureOrDash("%.3f", r.Regret),
			figureOrDash("%.2f", r.Bound), differenceText(r.Ahead), figureOrDash("%.1f", r.Compactions), figureOrDash("%.1f", r.Rewrites), figureOrDash("%.3f", r.Cached), figureOrDash("%.3f", r.Kept), figureOrDash("%.2f", r.Again),
			figureOrDash("%.0f", r.Mean), figureOrDash("%.0f", r.Peak), figureOrDash("%.1f", r.Lookups), figureOrDash("%.1f", r.Rereads)}
	})
}

func (p *page) validity(v *eval.ValidityReport) {
	p.printf("<h2>Validity</h2>\n")
	table(p, []string{"policy", "API", "prompts", "compactions", "invalid", "over budget"}, v.Rows, func(r eval.ValidityRow) (bool, []any) {
		return false, []any{r.Policy, r.API, thousands(r.Prompts), thousands(r.Compactions), thousands(r.Invalid), thousands(r.Over)}
	})
	if len(v.Problems) > 0 {
		p.printf("<ul>")
		for _, problem := range v.Problems {
			p.printf("<li>%s</li>", problem)
		}
		p.printf("</ul>\n")
	}
}

func fixed3(x float64) string       { return fmt.Sprintf("%.3f", x) }
func fixed2(x float64) string       { return fmt.Sprintf("%.2f", x) }
func percent(x float64) string      { return fmt.Sprintf("%.1f %%", 100*x) }
func span(low, high float64) string { return fixed3(low) + "…" + fixed3(high) }
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return thousands(n) + " " + noun
}

// figureOrDash is a figure, or a dash for 0.
func figureOrDash(format string, x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf(format, x)
}

// differenceText is a difference with its interval.
func differenceText(i *eval.Interval) string {
	if i == nil {
		return "–"
	}
	return fmt.Sprintf("%+.3f (%+.3f…%+.3f)", i.Mean, i.Low, i.High)
}
