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
	"plural": func(n int, noun string) string {
		if n != 1 {
			noun += "s"
		}
		return thousands(n) + " " + noun
	},
	"after": func(values []float64, round int) float64 { return values[round-1] },
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

// thousands writes a whole number with a narrow space, which no line is broken at,
// at each thousand.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// Lead is what the page shows, in a few sentences.
func (d *Data) Lead() []string {
	var all []string
	if c := d.leading(); c != nil {
		ours, simple := c.score(auto), c.score(best)
		words := fmt.Sprintf("Cut at %d places and fitted into %s", c.Moments, budgetWords(c.Name))
		switch {
		case ours != nil && simple != nil:
			all = append(all, fmt.Sprintf("%s, auto still shows %.0f %% of what the agent writes again, and %.0f %% with one lookup; the best simple way shows %.0f %%.",
				words, 100*ours.Bound, 100*ours.Lookup, 100*simple.Bound))
		case simple != nil:
			all = append(all, fmt.Sprintf("%s, the best simple way still shows %.0f %% of what the agent writes again.", words, 100*simple.Bound))
		}
	}
	if d.Cost != nil {
		for _, r := range d.Cost.Rows {
			if r.Contender == auto {
				all = append(all, fmt.Sprintf("Sent request by request under auto, the conversations cost %.0f %% of what they cost without compaction; of what they refer to later, %.0f %% stands in the prompt or comes with one lookup.",
					100*cmp.Or(r.All, r.Input), 100*r.Recall))
			}
		}
	}
	if d.Drift != nil {
		for _, r := range d.Drift.Rows {
			if n := len(r.Canaries); r.Contender == auto && n > 0 {
				all = append(all, fmt.Sprintf("After %d compactions in a row under auto, %.0f %% of the facts that were planted at the beginning still stand in the prompt, %.0f %% with one lookup.",
					d.Drift.Rounds, 100*r.Canaries[n-1], 100*r.CanariesTotal[len(r.CanariesTotal)-1]))
			}
		}
	}
	if d.Validity != nil {
		prompts, bad := 0, 0
		for _, r := range d.Validity.Rows {
			prompts += r.Prompts
			bad += r.Invalid
		}
		all = append(all, fmt.Sprintf("Of %s prompts, %s break a published rule of their API.", thousands(prompts), thousands(bad)))
	}
	return all
}

// Conversations is how many the page is about.
func (d *Data) Conversations() int {
	switch {
	case d.Recall != nil:
		return d.Recall.Sessions
	case d.Cost != nil:
		return d.Cost.Sessions
	case d.Drift != nil:
		return d.Drift.Sessions
	case d.Validity != nil:
		return d.Validity.Sessions
	}
	return 0
}

// column is a budget with its scores by name.
type column struct{ *eval.Column }

func (c column) score(contender string) *eval.Score {
	for i := range c.Scores {
		if c.Scores[i].Contender == contender {
			return &c.Scores[i]
		}
	}
	return nil
}

// leading is the budget that the first words are about: a fifth of the history,
// or the first one.
func (d *Data) leading() *column {
	if d.Recall == nil || len(d.Recall.Columns) == 0 {
		return nil
	}
	lead := &d.Recall.Columns[0]
	for i := range d.Recall.Columns {
		if d.Recall.Columns[i].Name == "20%" {
			lead = &d.Recall.Columns[i]
		}
	}
	return &column{lead}
}

func budgetWords(name string) string {
	if share, ok := strings.CutSuffix(name, "%"); ok {
		return share + " % of their size"
	}
	return name + " tokens"
}

// cutWords say what a budget is.
func cutWords(name string) string {
	switch {
	case name == "own summary":
		return "the size of the agent's own summary, where it compacted"
	case strings.Contains(name, " "):
		return strings.TrimSuffix(name, "%") + " % (a family of short conversations)"
	case strings.HasSuffix(name, "%"):
		return strings.TrimSuffix(name, "%") + " % of the history"
	}
	return name + " tokens"
}

// Summary is bound recall, and that with lookups, by contender and budget.
func (d *Data) Summary() []SummaryRow {
	var rows []SummaryRow
	for _, c := range d.Recall.Columns {
		for _, s := range c.Scores {
			if !slices.ContainsFunc(rows, func(r SummaryRow) bool { return r.Contender == s.Contender }) {
				rows = append(rows, SummaryRow{Contender: s.Contender})
			}
		}
	}
	for i := range rows {
		for k := range d.Recall.Columns {
			rows[i].Scores = append(rows[i].Scores, column{&d.Recall.Columns[k]}.score(rows[i].Contender))
		}
	}
	return rows
}

// SummaryRow is a contender at every budget; a score is nil where it did not run.
type SummaryRow struct {
	Contender string
	Scores    []*eval.Score
}

// Term is a contender and what it does.
type Term struct{ Name, Meaning string }

// terms are the contenders in the order of the page.
var terms = []Term{
	{"identity", "keeps everything, whatever the budget: the ceiling"},
	{"empty", "keeps the last exchange alone: the floor"},
	{"random", "whole messages by chance, 20 times"},
	{"head+tail", "the oldest and the newest messages, half of the room each"},
	{"sliding window", "the newest messages that fit"},
	{"mask 10, recency", "a placeholder for all but the newest 10 tool results, then the newest that fit"},
	{"clear tool uses keep 3, recency", "the same with 3 tool results, as providers' context editing does by default"},
	{"AI SDK prune 20, recency", "no reasoning, no calls and results before the last 20 messages, then the newest that fit"},
	{"best simple", "all but the newest 10 tool results masked, no reasoning, the newest that fit, larger ones skipped: the best of the simple ways"},
	{"oracle", "knows what will be written and keeps the smallest pieces that hold it: no real way reaches it"},
	{"ladder", "puts large results aside, summarises, clears, drops: rung by rung until the prompt fits"},
	{"session", "all but the newest ten messages become one summary, which each later round goes on with; written by rule here, without a model"},
	{"timeline", "what lies between the last summary and a cut becomes a new summary block; by rule here"},
	{"workstream", "all but the newest six messages become a summary and a typed state: rules, decisions, open points; by rule here"},
	{"loop", "the older 60 % become one summary, by rule here; asked for a small budget it stays above it"},
	{"the agent's own summary", "what the recorded agent itself wrote where it compacted"},
	{"auto", "our default: result lines and messages by their chance to be needed, summaries, state, and tools to read again and to search"},
	{"no compaction", "everything is sent, from the provider's cache where that holds it"},
	{"no compaction, no cache", "everything is sent and paid in full at each request"},
	{"the agent as it ran", "compacts where the recorded agent did, to its own summary"},
	{"20k left by the law", "keeps the newest 20,000 tokens when the square-root law of prices and growth says so"},
	{"20k left by the law, and when cold", "the same, and also when the provider's cache has forgotten the prompt"},
	{"20k left, best schedule", "the cheapest times to do so, found with the whole conversation known"},
	{"auto, best schedule", "the cheapest times for auto to compact, found with the whole conversation known"},
	{"lower bound", "each message is sent until its last use and not once longer: nobody reaches it"},
}

// Terms are the contenders of the page that need a word.
func (d *Data) Terms() []Term {
	there := map[string]bool{}
	if d.Recall != nil {
		for _, r := range d.Summary() {
			there[r.Contender] = true
		}
	}
	if d.Cost != nil {
		for _, r := range d.Cost.Rows {
			there[r.Contender] = true
		}
	}
	if d.Drift != nil {
		for _, r := range d.Drift.Rows {
			there[r.Contender] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(terms), func(t Term) bool { return !there[t.Name] })
}

// Iso are the cheapest ways to the recall that costs are compared at.
func (d *Data) Iso() []eval.CostRow {
	var rows []eval.CostRow
	for _, name := range d.Cost.Iso {
		for _, r := range d.Cost.Rows {
			if r.Contender == name {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// Figure is a plot with its title.
type Figure struct {
	Title string
	Plot  template.HTML
}

// Forests are the recall of every contender at every budget, with intervals.
func (d *Data) Forests() []Figure {
	var all []Figure
	for i, c := range d.Recall.Columns {
		var rows []whisker
		for _, s := range c.Scores {
			rows = append(rows, whisker{s.Contender, s.Bound, s.Low, s.High, s.Contender == auto, s.Over >= 0.5, s.Failed >= 0.5})
		}
		title := "Bound recall at " + cutWords(c.Name)
		if c.Sessions > 1 {
			title += ", with 95 % intervals by conversation"
		}
		all = append(all, Figure{title, forest(fmt.Sprintf("recall%d", i), title, "bound recall", rows)})
	}
	return all
}

// CostPlot is recall against cost: a line for each way that ran at several sizes.
func (d *Data) CostPlot() template.HTML {
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
	return frontier("cost", "Recall with lookups against cost, for each way to compact", "cost of the input, lookups and re-reads in it, over that without compaction (log scale)", "recall with lookups", curves)
}

// traced are the contenders whose steps are drawn: more would hide each other.
var traced = []string{"no compaction", "mask all but 10 at every step", "sliding window of 20k", "clear all but 3 at 100k", "the agent as it ran", "20k left by the law, and when cold", auto}

// Sizes are the prompts of one session, step by step.
func (d *Data) Sizes() template.HTML {
	return lines("sizes", "Size of the prompt at each request", "request", "tokens", 0, d.traces(func(t *eval.Trace) []float64 {
		out := make([]float64, len(t.Prompts))
		for i, n := range t.Prompts {
			out[i] = float64(n)
		}
		return out
	}))
}

// Spending is what they cost up to each step. What costs far more than no
// compaction leaves the picture.
func (d *Data) Spending() template.HTML {
	top := 0.0
	for _, t := range d.Cost.Traces {
		if t.Contender == "no compaction" && len(t.Spent) > 0 {
			top = 1.15 * t.Spent[len(t.Spent)-1]
		}
	}
	return lines("spending", "Cost of the input up to each request", "request", "tokens of uncached input", top, d.traces(func(t *eval.Trace) []float64 { return t.Spent }))
}

func (d *Data) traces(of func(*eval.Trace) []float64) []trace {
	var all []trace
	for _, name := range traced {
		for i := range d.Cost.Traces {
			if t := &d.Cost.Traces[i]; t.Contender == name {
				all = append(all, trace{name: name, strong: name == auto, values: of(t)})
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
		all = append(all, trace{r.Contender, r.Contender == auto, steps, r.Canaries})
	}
	return lines("decay", "Canaries that stand in the prompt after each compaction", "compactions", "share of the planted facts", 0, all)
}

// Kinds are the strata of a column by one property: type, age, origin or state.
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

// kindWords say what a property is.
var kindWords = map[string]string{
	"type": "type of identifier", "age": "steps since it was last mentioned", "origin": "who brought it up", "state": "whether it is out of date",
}

// kindNames are clearer than what a report calls a kind.
var kindNames = map[string]string{
	"origin call": "the agent, in a call", "origin tool": "a tool's result", "origin user": "the user",
	"state current": "current", "state superseded": "out of date",
}

// Kept says what was kept by type, age, origin and state, over all budgets.
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
	for _, property := range []string{"type", "age", "origin", "state"} {
		k := Kinds{Name: kindWords[property]}
		missed := 0.0
		for _, name := range slices.Sorted(maps.Keys(of[property])) {
			s := of[property][name]
			if s.needs == 0 {
				continue
			}
			missed += s.needs - s.auto
			k.Rows = append(k.Rows, Kind{
				Name: cmp.Or(kindNames[property+" "+name], name), Needs: int(s.needs), Best: s.best / s.needs, Auto: s.auto / s.needs, Lookup: s.lookup / s.needs,
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
			groups = append(groups, group{fmt.Sprintf("%s (%s)", r.Name, thousands(r.Needs)), []float64{r.Best, r.Auto, r.Lookup}})
		}
		if len(groups) == 0 {
			continue
		}
		k.Plot = bars("kept-"+property, "Bound recall by "+kindWords[property]+", over all budgets", []string{best, auto, "auto with a lookup"}, groups)
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
