package exam

import (
	"fmt"
	"io"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// WriteTable writes the report for people, in 80 columns.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "What readers know: points over questions (false: answers that state what is\nnot so, of n). Sizes are of the text, by %s.\n\n", r.Counter)
	several := r.Readings > 1
	g := texttable.Table{Head: []string{"contender", "budget", "tokens", "score", "false", "n"}}
	if several {
		g.Head = append(g.Head, "readings")
	}
	g.Head = append(g.Head, r.Types...)
	two := func(x float64) string { return fmt.Sprintf("%.2f", x) }
	var over []string
	for _, x := range r.Rows {
		cells := []string{x.Contender, x.Budget, rangeText(x.Least, x.Most), fmt.Sprintf("%.3f", x.Score), fmt.Sprint(x.False), fmt.Sprint(x.N)}
		if several {
			low, high := x.spread()
			cells = append(cells, fmt.Sprintf("%.3f…%.3f", low, high))
		}
		for _, kind := range r.Types {
			cell := "-"
			if t, ok := x.ByType[kind]; ok {
				cell = two(t.Score)
			}
			cells = append(cells, cell)
		}
		g.Row(cells...)
		if x.Over > 0 {
			over = append(over, fmt.Sprintf("%s at %s in %d of %d", x.Contender, x.Budget, x.Over, len(x.BySession)))
		}
	}
	g.Write(&b)
	texttable.List(&b, "Over the budget: ", over)
	b.WriteString("\nBy session, points of a reading")
	if several {
		b.WriteString(" as the mean and the ends of the readings")
	}
	b.WriteString(":\n\n")
	g = texttable.Table{Head: []string{"contender"}}
	for n := range r.Sessions {
		g.Head = append(g.Head, fmt.Sprintf("(%d)", n+1))
	}
	for _, x := range r.Rows {
		cells := []string{x.Contender + " " + x.Budget}
		for _, session := range r.Sessions {
			cells = append(cells, x.BySession[session].text(several))
		}
		g.Row(cells...)
	}
	g.Write(&b)
	b.WriteByte('\n')
	for n, session := range r.Sessions {
		fmt.Fprintf(&b, "(%d) %s\n", n+1, session)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(&b, "\nNot made: %s at %s, %s: %s\n", m.Contender, m.Budget, m.Session, m.Why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text is the cell in a table; nil when there was no prompt.
func (c *Cell) text(several bool) string {
	switch {
	case c == nil:
		return "-"
	case several:
		return fmt.Sprintf("%.1f (%.1f…%.1f) of %d", c.Mean, c.Low, c.High, c.Questions)
	}
	return fmt.Sprintf("%.1f of %d", c.Mean, c.Questions)
}

// rangeText writes a range, or a single number.
func rangeText(low, high int) string {
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d…%d", low, high)
}
