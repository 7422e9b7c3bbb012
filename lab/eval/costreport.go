package eval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
	"github.com/palimpsest-ai/palimpsest/token"
)

// CostReport is what sessions cost under each contender.
type CostReport struct {
	Split    references.Split `json:"split"`
	Counter  string           `json:"counter"`
	Sessions int              `json:"sessions"`
	Requests int              `json:"requests"`
	// Left counts the conversations that were not measured because the run was canceled.
	Left int `json:"left,omitempty"`
	// Model, Date and Source say whose prices and cache rules these are.
	Model  string `json:"model"`
	Date   string `json:"date"`
	Source string `json:"source"`
	// Around is what system and tools were taken to be where none are recorded.
	Around int `json:"around,omitempty"`
	// Gaps says whose times between requests these are.
	Gaps string `json:"gaps"`
	// Corpus is a hash over what was measured on, as in Report.
	Corpus string    `json:"corpus"`
	Rows   []CostRow `json:"rows"`
	// Iso names the cheapest contender of each line that recalls at least 0.95 with
	// lookups, whose cost counts; the cheapest first.
	Iso []string `json:"iso_recall"`
	// Traces show the largest session request by request.
	Traces []Trace `json:"traces"`
}

// Trace is a session under one contender.
type Trace struct {
	Session   string `json:"session"`
	Contender string `json:"contender"`
	// Prompts are the sizes of the requests in tokens, Spent what they cost up to
	// each, in tokens of uncached input.
	Prompts []int     `json:"prompts"`
	Spent   []float64 `json:"spent"`
}

// isoRecall is the recall at which costs are compared.
const isoRecall = 0.95

// CostRow is a contender, as means over sessions.
type CostRow struct {
	Contender string `json:"contender"`
	// Line is shared by contenders that differ only in a size; empty for schedules and
	// bounds, which send nothing.
	Line string `json:"line,omitempty"`
	// Size is that size: tokens that are left, tokens from which it acts, or results that
	// are kept; empty for none.
	Size string `json:"size,omitempty"`
	// Input is what the prompts cost, over what they cost without compaction in
	// the same cache; Low and High are its 95 percent interval, by session. All
	// has lookups and reading again added, Total the answers too.
	Input float64 `json:"input"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	All   float64 `json:"with_fetches,omitempty"`
	Total float64 `json:"with_output,omitempty"`
	// Regret is Input over that of the best schedule of the same renderer, as the
	// mean of the sessions' ratios; 0 where no schedule was computed.
	Regret float64 `json:"regret,omitempty"`
	// Bound is Input over the lower bound, as the mean of the sessions' ratios.
	Bound float64 `json:"over_bound"`
	// Ahead is what auto costs more than this contender, with fetches, AheadRecall
	// what it recalls more with lookups, in the same sessions; nil where auto did not
	// run, for auto itself, and for what sends nothing.
	Ahead       *Interval `json:"auto_minus_cost,omitempty"`
	AheadRecall *Interval `json:"auto_minus_recall,omitempty"`
	// Compactions are for a session; Rewrites for a hundred requests.
	Compactions float64 `json:"compactions"`
	Rewrites    float64 `json:"rewrites"`
	// Cached is the share of the input that was read from the cache, Kept the share
	// of a prompt that stands unchanged at the beginning of the next.
	Cached float64 `json:"cached,omitempty"`
	Kept   float64 `json:"kept,omitempty"`
	// Again are the tokens written once more for each token freed, over all
	// rewrites of all sessions.
	Again float64 `json:"rewritten_per_freed,omitempty"`
	// Mean and Peak are prompt sizes in tokens; Peak is the mean of the largest.
	Mean float64 `json:"mean_prompt,omitempty"`
	Peak float64 `json:"peak_prompt,omitempty"`
	// Refs counts the references to content before a compaction, over all sessions. Direct
	// is the share of them that is in the prompt, Recall with those that one lookup
	// brings. Lookups and Rereads are calls per session.
	Refs    int     `json:"references"`
	Direct  float64 `json:"direct"`
	Recall  float64 `json:"recall"`
	Lookups float64 `json:"lookups"`
	Rereads float64 `json:"rereads"`
}

// costOrder is the order of the rows.
var costOrder = []string{
	noneName, noCacheName, maskName, slidingName, clearName, at150Name, at100Name, asRanName, lawName, lawColdName, bestName,
	"ladder", "session", "timeline", "workstream", "loop", references.NotesName, notesBalancedName, references.AutoName, balancedName, qualityName, autoBestName, boundName,
}

// schedules names the best schedule of a contender's renderer.
var schedules = map[string]string{
	at150Name: bestName, at100Name: bestName, lawName: bestName, lawColdName: bestName, references.AutoName: autoBestName,
}

func newCostReport(set *references.Set, parts []*costs, m token.Model, o *CostOptions) *CostReport {
	r := &CostReport{
		Split: o.Split, Counter: set.Counter.Name(), Sessions: len(parts),
		Model: m.Name, Date: m.Date, Source: m.Source, Around: o.Around, Gaps: cmp.Or(o.Gaps, RecordedGaps),
	}
	r.Split = cmp.Or(r.Split, references.All)
	var sessions []*references.Session
	for _, p := range parts {
		sessions = append(sessions, p.session)
		r.Requests += p.spent[noneName].requests
	}
	r.Corpus = references.CorpusHash(slices.Values(sessions))
	resample := newBootstrap(len(parts))
	for _, name := range parts[0].order() {
		each := func(f func(c *costs, s *sessionCost) float64) []float64 {
			out := make([]float64, len(parts))
			for i, c := range parts {
				out[i] = f(c, c.spent[name])
			}
			return out
		}
		over := func(f func(c *costs, s *sessionCost) float64) float64 { return mean(each(f)) }
		inputs := each(func(c *costs, s *sessionCost) float64 { return s.input / c.whole })
		row := CostRow{
			Contender: name, Line: parts[0].lines[name], Size: parts[0].sizes[name], Input: mean(inputs),
			Compactions: over(func(_ *costs, s *sessionCost) float64 { return float64(s.compactions) }),
		}
		row.Low, row.High = resample.interval(inputs)
		if parts[0].spent[name].requests > 0 {
			row.measured(over)
			row.compareWithAuto(parts, resample)
		}
		row.Bound = over(func(c *costs, s *sessionCost) float64 { return s.input / c.spent[boundName].input })
		if best := schedules[name]; best != "" {
			row.Regret = over(func(c *costs, s *sessionCost) float64 { return s.input / c.spent[best].input })
		}
		var all sessionCost
		for _, c := range parts {
			s := c.spent[name]
			all.refs += s.refs
			all.direct += s.direct
			all.found += s.found
			all.freed += s.freed
			all.again += s.again
		}
		if row.Refs = int(all.refs); row.Refs > 0 {
			row.Direct, row.Recall = all.direct/all.refs, (all.direct+all.found)/all.refs
		}
		if all.freed > 0 {
			row.Again = float64(all.again) / float64(all.freed)
		}
		r.Rows = append(r.Rows, row)
		if x := parts[0].spent[name]; len(x.sizes) > 0 {
			r.Traces = append(r.Traces, Trace{parts[0].session.Name, name, x.sizes, x.sums})
		}
	}
	r.findCheapest()
	return r
}

// order is that of the rows: the known ones first, and other sizes after the last of
// their line.
func (c *costs) order() []string {
	names := slices.DeleteFunc(slices.Clone(costOrder), func(name string) bool { return c.spent[name] == nil })
	for _, name := range c.names {
		if slices.Contains(names, name) {
			continue
		}
		at := 0
		for i, other := range names {
			if c.lines[other] == c.lines[name] {
				at = i + 1
			}
		}
		names = slices.Insert(names, at, name)
	}
	return names
}

// compareWithAuto compares auto with the contender.
func (row *CostRow) compareWithAuto(parts []*costs, resample *bootstrap) {
	if row.Contender == references.AutoName || parts[0].spent[references.AutoName] == nil {
		return
	}
	var ours, theirs, ourRecall, theirRecall []float64
	for _, c := range parts {
		a, x := c.spent[references.AutoName], c.spent[row.Contender]
		ours = append(ours, (a.input+a.extra)/c.whole)
		theirs = append(theirs, (x.input+x.extra)/c.whole)
		if a.refs > 0 && x.refs > 0 {
			ourRecall = append(ourRecall, (a.direct+a.found)/a.refs)
			theirRecall = append(theirRecall, (x.direct+x.found)/x.refs)
		}
	}
	d := resample.difference(ours, theirs)
	row.Ahead = &d
	if n := len(ourRecall); n > 0 {
		d := newBootstrap(n).difference(ourRecall, theirRecall)
		row.AheadRecall = &d
	}
}

// findCheapest finds, for each line, the cheapest row that reaches the recall.
func (r *CostReport) findCheapest() {
	best := map[string]CostRow{}
	for _, row := range r.Rows {
		if row.Line == "" || row.Refs == 0 || row.Recall < isoRecall {
			continue
		}
		if x, ok := best[row.Line]; !ok || row.All < x.All {
			best[row.Line] = row
		}
	}
	for _, row := range slices.SortedFunc(maps.Values(best), func(a, b CostRow) int {
		return cmp.Or(cmp.Compare(a.All, b.All), strings.Compare(a.Line, b.Line))
	}) {
		r.Iso = append(r.Iso, row.Contender)
	}
}

// Cheapest are the rows that Iso names, in its order.
func (r *CostReport) Cheapest() (rows []CostRow) {
	for _, name := range r.Iso {
		for _, row := range r.Rows {
			if row.Contender == name {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

func (row *CostRow) measured(over func(func(c *costs, s *sessionCost) float64) float64) {
	row.All = over(func(c *costs, s *sessionCost) float64 { return (s.input + s.extra) / c.whole })
	row.Total = over(func(c *costs, s *sessionCost) float64 {
		return (s.input + s.extra + s.output) / (c.whole + c.spent[noneName].output)
	})
	row.Rewrites = over(func(_ *costs, s *sessionCost) float64 { return 100 * float64(s.rewrites) / float64(s.requests) })
	row.Cached = over(func(_ *costs, s *sessionCost) float64 { return float64(s.bill.Read) / float64(max(1, s.bill.Input())) })
	row.Kept = over(func(_ *costs, s *sessionCost) float64 { return float64(s.same) / float64(max(1, s.next)) })
	row.Mean = over(func(_ *costs, s *sessionCost) float64 { return float64(s.sum) / float64(s.requests) })
	row.Peak = over(func(_ *costs, s *sessionCost) float64 { return float64(s.peak) })
	row.Lookups = over(func(_ *costs, s *sessionCost) float64 { return s.lookups })
	row.Rereads = over(func(_ *costs, s *sessionCost) float64 { return s.rereads })
}

// WriteTable writes the report for people, in 80 columns.
func (r *CostReport) WriteTable(w io.Writer, details bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nCost: %s (%s), %s, corpus %s\nprices and cache of %s (%s)\n",
		plural(r.Sessions, "conversation"), r.Split, plural(r.Requests, "request"), r.Corpus, r.Model, r.Date)
	if r.Around > 0 {
		fmt.Fprintf(&b, "system and tools are taken to be %d tokens where none are recorded\n", r.Around)
	}
	switch r.Gaps {
	case FixedGaps:
		b.WriteString("a request is sent every 20 seconds, whatever the record tells\n")
	case LognormalGaps:
		b.WriteString("the times between requests are drawn, lognormal, whatever the record tells\n")
	}
	b.WriteString("The unit of input is what no compaction costs in the same cache: less is cheaper.\n\n")
	number := func(x float64, format string) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf(format, x)
	}
	main := texttable.Table{Head: []string{"contender", "input", "95 %", "+fetch", "recall", "regret"}}
	more := texttable.Table{Head: []string{"contender", "+output", "/bound", "comp", "rewr", "cached", "kept", "again", "mean", "peak", "refs", "direct", "look", "reread", "auto minus it: cost", "auto minus it: recall"}}
	for _, x := range r.Rows {
		main.Row(x.Contender, fmt.Sprintf("%.3f", x.Input), fmt.Sprintf("%.3f…%.3f", x.Low, x.High), number(x.All, "%.3f"), number(x.Recall, "%.3f"), number(x.Regret, "%.3f"))
		more.Row(x.Contender, number(x.Total, "%.3f"), number(x.Bound, "%.2f"), number(x.Compactions, "%.1f"), number(x.Rewrites, "%.1f"),
			number(x.Cached, "%.3f"), number(x.Kept, "%.3f"), number(x.Again, "%.2f"), number(x.Mean, "%.0f"), number(x.Peak, "%.0f"),
			fmt.Sprint(x.Refs), number(x.Direct, "%.3f"), number(x.Lookups, "%.1f"), number(x.Rereads, "%.1f"), x.Ahead.signed(), x.AheadRecall.signed())
	}
	main.Write(&b)
	if details {
		b.WriteByte('\n')
		more.Write(&b)
	}
	fmt.Fprintf(&b, "\nThe cheapest way to a recall of %.2f with lookups, fetches in the cost:\n", isoRecall)
	if len(r.Iso) == 0 {
		b.WriteString("none of these reaches it\n")
	} else {
		iso := texttable.Table{Head: []string{"contender", "recall", "cost"}}
		for _, x := range r.Cheapest() {
			iso.Row(x.Contender, fmt.Sprintf("%.3f", x.Recall), fmt.Sprintf("%.3f", x.All))
		}
		iso.Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
