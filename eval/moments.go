package eval

import (
	"slices"

	"github.com/palimpsest-ai/palimpsest/internal/references"
)

// long is the size in tokens from which a session counts as long, least the
// history from which a share of it is a budget worth the name.
const (
	long  = 10_000
	least = 4_000
)

// moments chooses where the session is cut for a setting: evenly among the steps
// with a history of at least four times the budget; a session that never grows
// that long is cut at 25, 50 and 75 percent of its steps.
func (b budgetSetting) moments(s *references.Session, at func(step int) *references.Moment) []*references.Moment {
	if b.own {
		return compactions(s, at)
	}
	if b.family == "" && s.Total < long {
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
		if size >= 4*budget && size >= least && b.family == "" {
			grown = append(grown, step)
		}
		if size >= budget*3/2 {
			enough = append(enough, step)
		}
	}
	steps, n := grown, moments
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
		// A tail that leaves no room for anything measures nothing.
		if len(m.Refs) > 0 && m.Rest <= b.budgetFor(s, m.Size)*3/4 {
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
		if len(m.Refs) > 0 {
			all = append(all, m)
		}
	}
	return all
}
