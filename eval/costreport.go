package eval

import (
	"fmt"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/token"
)

// CostReport is what sessions cost under each contender.
type CostReport struct {
	Split    Split  `json:"split"`
	Counter  string `json:"counter"`
	Sessions int    `json:"sessions"`
	Requests int    `json:"requests"`
	// Left are the conversations that were not measured since the run was broken
	// off.
	Left int `json:"left,omitempty"`
	// Model, Date and Source say whose prices and cache rules these are.
	Model  string `json:"model"`
	Date   string `json:"date"`
	Source string `json:"source"`
	// Around is what system and tools were taken to be where none are recorded.
	Around int       `json:"around,omitempty"`
	Rows   []CostRow `json:"rows"`
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

// CostRow is a contender, as means over sessions.
type CostRow struct {
	Contender string `json:"contender"`
	// Input is what the prompts cost, over what they cost without compaction in
	// the same cache; Low and High are its 95 percent interval, by session. All
	// has lookups and reading again added, Total the answers too.
	Input float64 `json:"input"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	All   float64 `json:"with_fetches,omitempty"`
	Total float64 `json:"with_output,omitempty"`
	// Regret is Input over that of the best schedule of the same renderer, as the
	// mean of the sessions' ratios; 0 where no schedule was reckoned.
	Regret float64 `json:"regret,omitempty"`
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
	// Refs are the references to what stood before a compaction, over all sessions,
	// Direct the share of them that stood in the prompt, Recall with those that one
	// lookup brought. Lookups and Rereads are calls for a session.
	Refs    int     `json:"references"`
	Direct  float64 `json:"direct"`
	Recall  float64 `json:"recall"`
	Lookups float64 `json:"lookups"`
	Rereads float64 `json:"rereads"`
}

// costOrder is the order of the rows.
var costOrder = []string{
	noneName, maskName, slidingName, clearName, at150Name, at100Name, asRanName, lawName, lawColdName, bestName,
	"ladder", "session", "timeline", "workstream", "loop", autoName, autoBestName, boundName,
}

// schedules names the best schedule of a contender's renderer.
var schedules = map[string]string{
	at150Name: bestName, at100Name: bestName, lawName: bestName, lawColdName: bestName, autoName: autoBestName,
}

func newCostReport(set *Set, parts []*costs, m token.Model, o *CostOptions) *CostReport {
	r := &CostReport{
		Split: o.Split, Counter: set.counter.Name(), Sessions: len(parts),
		Model: m.Name, Date: m.Date, Source: m.Source, Around: o.Around,
	}
	if r.Split == "" {
		r.Split = All
	}
	for _, p := range parts {
		r.Requests += p.spent[noneName].requests
	}
	resample := newBootstrap(len(parts))
	for _, name := range costOrder {
		if parts[0].spent[name] == nil {
			continue
		}
		each := func(f func(c *costs, s *spent) float64) []float64 {
			out := make([]float64, len(parts))
			for i, c := range parts {
				out[i] = f(c, c.spent[name])
			}
			return out
		}
		over := func(f func(c *costs, s *spent) float64) float64 { return mean(each(f)) }
		inputs := each(func(c *costs, s *spent) float64 { return s.input / c.whole })
		row := CostRow{
			Contender: name, Input: mean(inputs),
			Compactions: over(func(_ *costs, s *spent) float64 { return float64(s.compactions) }),
		}
		row.Low, row.High = resample.interval(inputs)
		if parts[0].spent[name].requests > 0 {
			row.measured(over)
		}
		if best := schedules[name]; best != "" {
			row.Regret = over(func(c *costs, s *spent) float64 { return s.input / c.spent[best].input })
		}
		var all spent
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
			r.Traces = append(r.Traces, Trace{parts[0].name, name, x.sizes, x.sums})
		}
	}
	return r
}

func (row *CostRow) measured(over func(func(c *costs, s *spent) float64) float64) {
	row.All = over(func(c *costs, s *spent) float64 { return (s.input + s.extra) / c.whole })
	row.Total = over(func(c *costs, s *spent) float64 {
		return (s.input + s.extra + s.output) / (c.whole + c.spent[noneName].output)
	})
	row.Rewrites = over(func(_ *costs, s *spent) float64 { return 100 * float64(s.rewrites) / float64(s.requests) })
	row.Cached = over(func(_ *costs, s *spent) float64 { return float64(s.bill.Read) / float64(max(1, s.bill.Input())) })
	row.Kept = over(func(_ *costs, s *spent) float64 { return float64(s.same) / float64(max(1, s.next)) })
	row.Mean = over(func(_ *costs, s *spent) float64 { return float64(s.sum) / float64(s.requests) })
	row.Peak = over(func(_ *costs, s *spent) float64 { return float64(s.peak) })
	row.Lookups = over(func(_ *costs, s *spent) float64 { return s.lookups })
	row.Rereads = over(func(_ *costs, s *spent) float64 { return s.rereads })
}

// WriteTable writes the report for people.
func (r *CostReport) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\ncost · %s split · %d sessions · %d requests · prices and cache of %s (%s)\n", r.Split, r.Sessions, r.Requests, r.Model, r.Date)
	if r.Around > 0 {
		fmt.Fprintf(&b, "system and tools are taken to be %d tokens where none are recorded\n", r.Around)
	}
	fmt.Fprintf(&b, "%-36s %6s  %-13s %7s %7s %7s %6s %6s %6s %6s %6s %8s %8s %6s %6s %6s %6s %6s\n",
		"", "input", "95 %", "+fetch", "+output", "regret", "comp", "rewr", "cached", "kept", "again", "mean", "peak", "refs", "direct", "recall", "look", "reread")
	number := func(x float64, format string) string {
		if x == 0 {
			return "-"
		}
		return fmt.Sprintf(format, x)
	}
	for _, x := range r.Rows {
		fmt.Fprintf(&b, "%-36s %6.3f  %.3f-%.3f  %7s %7s %7s %6.1f %6s %6s %6s %6s %8s %8s %6d %6s %6s %6s %6s\n",
			x.Contender, x.Input, x.Low, x.High, number(x.All, "%.3f"), number(x.Total, "%.3f"), number(x.Regret, "%.3f"), x.Compactions, number(x.Rewrites, "%.1f"),
			number(x.Cached, "%.3f"), number(x.Kept, "%.3f"), number(x.Again, "%.2f"), number(x.Mean, "%.0f"), number(x.Peak, "%.0f"),
			x.Refs, number(x.Direct, "%.3f"), number(x.Recall, "%.3f"), number(x.Lookups, "%.1f"), number(x.Rereads, "%.1f"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
