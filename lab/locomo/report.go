package locomo

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval"
	"github.com/palimpsest-ai/palimpsest/lab/texttable"
)

// Report is what is left of conversations between people.
type Report struct {
	Counter       string   `json:"counter"`
	Conversations int      `json:"conversations"`
	Questions     int      `json:"questions"`
	Columns       []Column `json:"columns"`

	contenders []string // in the order of the rows
}

// Column is one budget.
type Column struct {
	Name   string  `json:"name"`
	Scores []Score `json:"scores"`
}

// Score is a contender, as means over conversations.
type Score struct {
	Contender string `json:"contender"`
	// Evidence is the share of the turns that answers stand in of which the prompt
	// holds at least four fifths of the words, by their weight. Answer is the share
	// of questions whose answer stands in the prompt, Lookup with one lookup by the
	// question. Each has its 95 percent interval, by conversation.
	Evidence eval.Interval `json:"evidence"`
	Answer   eval.Interval `json:"answer"`
	Lookup   eval.Interval `json:"answer_lookup"`
	// Over is the share of prompts beyond the budget.
	Over float64 `json:"over_budget"`
	// Categories are the same over all questions of each category, by its number.
	Categories map[string]Category `json:"categories"`
}

// Category is one kind of questions.
type Category struct {
	Questions int     `json:"questions"`
	Evidence  float64 `json:"evidence"`
	Answer    float64 `json:"answer"`
	Lookup    float64 `json:"answer_lookup"`
}

// column is one budget, from what was found in each conversation.
func (r *Report) column(budget string, found []map[string]*answered) Column {
	column := Column{Name: budget}
	for _, name := range r.contenders {
		s := Score{Contender: name, Categories: map[string]Category{}}
		with := func(f func(k kept) float64) eval.Interval {
			x := make([]float64, len(found))
			for i := range found {
				k := found[i][name].all()
				x[i] = f(k) / k.questions
			}
			return eval.MeanOf(x)
		}
		s.Evidence = with(func(k kept) float64 { return k.evidence })
		s.Answer = with(func(k kept) float64 { return k.answers })
		s.Lookup = with(func(k kept) float64 { return k.found })
		sums := map[int]*kept{}
		prompts := 0.0
		for _, by := range found {
			prompts = by[name].prompts
			s.Over += by[name].over / prompts / float64(len(found))
			for category, x := range by[name].byCategory {
				if sums[category] == nil {
					sums[category] = &kept{}
				}
				sums[category].add(*x)
			}
		}
		for category, x := range sums {
			s.Categories[fmt.Sprint(category)] = Category{int(x.questions/prompts + 0.5), x.evidence / x.questions, x.answers / x.questions, x.found / x.questions}
		}
		column.Scores = append(column.Scores, s)
	}
	return column
}

// WriteTable writes the report for people, in 80 columns.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nLoCoMo conversations: %d with %d questions, %s tokens\n", r.Conversations, r.Questions, r.Counter)
	b.WriteString("evidence: turns that answers stand in, still in the prompt; answer: its words, still\nin the prompt; lookup: or in one lookup by the question. No model answers here:\nthis is not the accuracy that LoCoMo reports.\n")
	for _, c := range r.Columns {
		fmt.Fprintf(&b, "\n%s\n\n", c.Name)
		g := texttable.Table{Head: []string{"contender", "evidence", "answer", "lookup", "over"}}
		for _, s := range c.Scores {
			g.Row(s.Contender, plain(s.Evidence), plain(s.Answer), plain(s.Lookup), fmt.Sprintf("%.2f", s.Over))
		}
		g.Write(&b)
		b.WriteByte('\n')
		g = texttable.Table{Head: []string{"evidence by category"}}
		names := slices.Sorted(maps.Keys(c.Scores[0].Categories))
		for _, name := range names {
			g.Head = append(g.Head, fmt.Sprintf("%s (%d)", name, c.Scores[0].Categories[name].Questions))
		}
		for _, s := range c.Scores {
			row := []string{s.Contender}
			for _, name := range names {
				row = append(row, fmt.Sprintf("%.3f", s.Categories[name].Evidence))
			}
			g.Row(row...)
		}
		g.Write(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plain(x eval.Interval) string { return fmt.Sprintf("%.2f (%.2f…%.2f)", x.Mean, x.Low, x.High) }
