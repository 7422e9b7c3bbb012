package eval

import (
	"fmt"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/grid"
)

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
	main := grid.Grid{Head: []string{"contender", "input", "95 %", "+fetch", "recall", "regret"}}
	more := grid.Grid{Head: []string{"contender", "+output", "/bound", "comp", "rewr", "cached", "kept", "again", "mean", "peak", "refs", "direct", "look", "reread", "auto minus it: cost", "auto minus it: recall"}}
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
		iso := grid.Grid{Head: []string{"contender", "recall", "cost"}}
		for _, x := range r.Cheapest() {
			iso.Row(x.Contender, fmt.Sprintf("%.3f", x.Recall), fmt.Sprintf("%.3f", x.All))
		}
		iso.Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
