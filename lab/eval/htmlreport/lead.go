package htmlreport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval"
)

// leadSentences sum the page up.
func (d *Data) leadSentences() []string {
	var all []string
	if c := d.leadColumn(); c != nil {
		ours, ran := c.Score(auto)
		simple, beside := c.Score(best)
		words := fmt.Sprintf("Cut at %d places and fitted into %s", c.Moments, budgetWords(c.Name))
		switch {
		case ran && beside:
			all = append(all, fmt.Sprintf("%s, auto still shows %.0f %% of what the agent writes again, and %.0f %% with one lookup; the best simple way shows %.0f %%.",
				words, 100*ours.Bound, 100*ours.Lookup, 100*simple.Bound))
		case beside:
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

// conversations is how many conversations the page is about.
func (d *Data) conversations() int {
	switch {
	case d.Recall != nil:
		return d.Recall.Sessions
	case d.Cost != nil:
		return d.Cost.Sessions
	case d.Validity != nil:
		return d.Validity.Sessions
	}
	return 0
}

// leadColumn is the budget of the summary: a fifth of the history, or the first one.
func (d *Data) leadColumn() *eval.Column {
	if d.Recall == nil || len(d.Recall.Columns) == 0 {
		return nil
	}
	fifth := slices.IndexFunc(d.Recall.Columns, func(c eval.Column) bool { return c.Name == "20%" })
	return &d.Recall.Columns[max(fifth, 0)]
}

func budgetWords(name string) string {
	if share, ok := strings.CutSuffix(name, "%"); ok {
		return share + " % of their size"
	}
	return name + " tokens"
}

// cutWords say what a budget is, in a title.
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
