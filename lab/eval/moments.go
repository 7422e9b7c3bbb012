package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/lab/budget"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
)

// longSession is the size from which a session counts as long, leastHistory the
// history from which a share of it is a budget worth the name, both in tokens.
const (
	longSession  = 10_000
	leastHistory = 4_000
)

// perSession is how many moments of a long session are measured at each budget.
const perSession = 5

// budgetSetting is a column: a budget over a group of sessions.
type budgetSetting struct {
	name   string
	tokens int
	share  float64
	family string // for families of short sessions, else ""
	// own: where the agent itself compacted, at the size of its own summary.
	own bool
}

// budgetFor is the budget for a history of the given size. A share is one of the whole
// request, system and tools included; they are not charged to it.
func (b budgetSetting) budgetFor(s *references.Session, size int) int {
	if b.tokens > 0 {
		return b.tokens
	}
	return int(b.share * float64(size+s.Fixed))
}

func parseBudget(text string) (b budgetSetting, err error) {
	b.name = text
	b.tokens, b.share, err = budget.Parse(text)
	return b, err
}

// budgetAt is the budget for the history of a moment.
func (b budgetSetting) budgetAt(m *references.Moment) int {
	if b.own {
		return m.Recap.Size + m.Rest
	}
	return b.budgetFor(m.Session, m.Size)
}

// settings are the columns of a run: the budgets for long sessions, and a fifth of the
// history for each family of short ones.
func settings(set *references.Set, o *Options) ([]budgetSetting, error) {
	budgets := o.Budgets
	switch {
	case len(budgets) > 0:
	case o.Curve:
		budgets = curveBudgets
	default:
		budgets = []string{"8k", "16k", "20%", "10%"}
	}
	var all []budgetSetting
	for _, text := range budgets {
		b, err := parseBudget(text)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if len(o.Budgets) == 0 && !o.Curve {
		all = append(all, budgetSetting{name: "own summary", own: true})
	}
	count := map[string]int{}
	for _, s := range set.Sessions {
		if s.Total < longSession {
			count[s.Family]++
		}
	}
	for _, s := range set.Sessions {
		if count[s.Family] >= references.MinFamilySessions && isShortFamily(set, s.Family) {
			all = append(all, budgetSetting{name: s.Family + " 20%", share: 0.2, family: s.Family})
			count[s.Family] = 0
		}
	}
	return all, nil
}

// isShortFamily reports whether a family has no long session.
func isShortFamily(set *references.Set, family string) bool {
	return !slices.ContainsFunc(set.Sessions, func(s *references.Session) bool { return s.Family == family && s.Total >= longSession })
}

// moments chooses where the session is cut for a setting: evenly among the steps
// with a history of at least four times the budget; a session that never grows
// that long is cut at 25, 50 and 75 percent of its steps.
func (b budgetSetting) moments(s *references.Session, at func(step int) *references.Moment) []*references.Moment {
	switch {
	case b.own:
		return compactions(s, at)
	case b.family == "" && s.Total < longSession, b.family != "" && b.family != s.Family:
		return nil
	}
	var grown, enough []int
	size, pos := 0, 0
	for step, at := range s.Steps {
		for ; pos < at; pos++ {
			size += s.Sizes[pos]
		}
		if step == 0 {
			continue
		}
		budget := b.budgetFor(s, size)
		if size >= 4*budget && size >= leastHistory && b.family == "" {
			grown = append(grown, step)
		}
		if size >= budget*3/2 {
			enough = append(enough, step)
		}
	}
	steps, n := grown, perSession
	if len(grown) == 0 {
		steps, n = enough, 3
	}
	var chosen []*references.Moment
	last := -1
	for i := range n {
		k := (i + 1) * len(steps) / (n + 1)
		if k >= len(steps) || k == last {
			continue
		}
		last = k
		m := at(steps[k])
		// A tail that leaves no room measures nothing.
		if len(m.Needs) > 0 && m.Rest <= b.budgetFor(s, m.Size)*3/4 {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

// compactions are the moments where the agent itself compacted.
func compactions(s *references.Session, at func(step int) *references.Moment) []*references.Moment {
	var all []*references.Moment
	for i := range s.Recaps {
		step, _ := slices.BinarySearch(s.Steps, s.Recaps[i].At)
		if step < 1 || step >= len(s.Steps) {
			continue
		}
		m := at(step)
		m.Recap = &s.Recaps[i]
		if len(m.Needs) > 0 {
			all = append(all, m)
		}
	}
	return all
}
