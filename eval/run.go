package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/budget"
	"github.com/palimpsest-ai/palimpsest/internal/references"
	"github.com/palimpsest-ai/palimpsest/recall"
)

// Options tune a run; nil and the zero value measure everything.
type Options struct {
	// Split is the half to measure on; empty for all.
	Split Split
	// Contenders are the names of those to run; none for all. Those that the
	// scores refer to (random, sliding window, oracle, best simple) always run.
	Contenders []string
	// Budgets are the sizes to fit into, such as "8k", "16000" or "20%" of the
	// history; none for 8k, 16k, 20% and 10%.
	Budgets []string
	// Curve stands for the budgets of the area under the curve: 2k, 4k, 8k, 16k, 32k,
	// 5%, 10%, 20% and 40%. Budgets go before it.
	Curve bool
	// Others run beside the contenders that are built in, such as other libraries in
	// lab/peers. Who runs sessions of their own leaves it empty.
	Others []references.Contender
	// Progress is told how many sessions are done.
	Progress Progress
}

// budget is what the history of a moment is fitted into.
func (b budgetSetting) budgetAt(m *references.Moment) int {
	if b.own {
		return m.Recap.Size + m.Rest
	}
	return b.budgetFor(m.Session, m.Size)
}

// Check reports what in the options names nothing.
func (o *Options) Check() error {
	for _, text := range o.Budgets {
		if _, err := parseBudget(text); err != nil {
			return err
		}
	}
	for _, name := range o.Contenders {
		if !slices.Contains(references.ContenderOrder, name) {
			return fmt.Errorf("no contender is called %q; known are %s", name, strings.Join(references.ContenderOrder, "; "))
		}
	}
	return nil
}

// moments is how many moments of a long session are measured at each budget.
const moments = 5

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

// column is what one setting came to.
type column struct {
	budgetSetting
	// sessions and tallies run in parallel, by contender.
	sessions []*references.Session
	moments  int
	eligible int
	used     int
	tallies  map[string][]tally
	strata   map[string]map[string]*tally // by contender and stratum
	misses   []Miss
}

// Run measures. The result is the same for the same set and options, whatever
// the number of processors. When the context ends first, the report is about the
// conversations done so far, and the error wraps that of the context.
func Run(ctx context.Context, set *Set, o *Options) (*Report, error) {
	o = cmp.Or(o, &Options{})
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	settings, err := settings(set, o)
	if err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	sessions := references.LargestFirst(set.OfSplit(o.Split, 0))
	parts := make([][]*column, len(sessions))
	err = references.Each(ctx, len(sessions), o.Progress, func(i int) error {
		var err error
		parts[i], err = measure(ctx, set, sessions[i], settings, o)
		return err
	})
	if err != nil {
		err = fmt.Errorf("eval.Run: %w", err)
		if !references.IsCanceled(ctx, err) {
			return nil, err
		}
	}
	all := len(parts)
	parts = slices.DeleteFunc(parts, func(p []*column) bool { return p == nil })
	columns := make([]*column, len(settings))
	for k, b := range settings {
		columns[k] = newColumn(b)
		for i := range parts {
			if parts[i][k] != nil {
				columns[k].merge(parts[i][k])
			}
		}
	}
	columns = slices.DeleteFunc(columns, func(c *column) bool { return len(c.sessions) == 0 })
	r := newReport(set, columns, o)
	r.Read, r.Left = all, all-len(parts)
	return r, err
}

func newColumn(b budgetSetting) *column {
	return &column{budgetSetting: b, tallies: map[string][]tally{}, strata: map[string]map[string]*tally{}}
}

// settings are the columns: the budgets for long sessions, a fifth of the history
// for each family of short ones.
func settings(set *Set, o *Options) ([]budgetSetting, error) {
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
		if s.Total < long {
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
func isShortFamily(set *Set, family string) bool {
	return !slices.ContainsFunc(set.Sessions, func(s *references.Session) bool { return s.Family == family && s.Total >= long })
}

func (c *column) merge(one *column) {
	c.sessions = append(c.sessions, one.sessions...)
	c.moments += one.moments
	c.eligible += one.eligible
	c.used += one.used
	for name, t := range one.tallies {
		c.tallies[name] = append(c.tallies[name], t...)
	}
	for name, strata := range one.strata {
		for stratum, t := range strata {
			c.stratum(name, stratum).sum(*t)
		}
	}
	c.misses = append(c.misses, one.misses...)
}

func (c *column) stratum(contender, stratum string) *tally {
	if c.strata[contender] == nil {
		c.strata[contender] = map[string]*tally{}
	}
	t := c.strata[contender][stratum]
	if t == nil {
		t = &tally{}
		c.strata[contender][stratum] = t
	}
	return t
}

// measure runs all contenders over one session; a column is nil where the session
// has no moment for it.
func measure(ctx context.Context, set *Set, s *references.Session, settings []budgetSetting, o *Options) ([]*column, error) {
	e, err := references.NewEngine(ctx, set.Counter())
	if err != nil {
		return nil, err
	}
	contenders := slices.DeleteFunc(append(references.SimpleContenders(set.Counter()), e.Contenders()...), func(c references.Contender) bool {
		return len(o.Contenders) > 0 && !slices.Contains(o.Contenders, c.Name) && !slices.Contains(referenceContenders, c.Name)
	})
	contenders = append(contenders, o.Others...)
	known := map[int]*references.Moment{}
	var entries []recall.Entry
	at := func(step int) *references.Moment {
		if known[step] == nil {
			if entries == nil {
				entries = s.Entries()
			}
			known[step] = s.Moment(step)
			known[step].Entries = entries
		}
		return known[step]
	}
	columns := make([]*column, len(settings))
	for k, b := range settings {
		if b.family != "" && b.family != s.Family {
			continue
		}
		cuts := b.moments(s, at)
		if len(cuts) == 0 {
			continue
		}
		c := newColumn(b)
		columns[k] = c
		c.sessions = []*references.Session{s}
		c.moments = len(cuts)
		sums := map[string]*tally{}
		for _, m := range cuts {
			c.eligible += len(m.Refs)
			c.used += m.Used
			budget := b.budgetAt(m)
			strata := make([][]string, len(m.Refs))
			for i, n := range m.Refs {
				strata[i] = strataOf(m, n)
			}
			contenders := contenders
			if b.own {
				contenders = append(slices.Clip(contenders), references.Contender{Name: references.OwnName, Render: func(m *references.Moment, _ int) *references.Shown {
					r := m.Show(m.Plain()[m.Tail:])
					r.Other = append(r.Other, m.Recap.Text)
					r.Tokens += m.Recap.Size
					return r
				}})
			}
			for _, x := range contenders {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if sums[x.Name] == nil {
					sums[x.Name] = &tally{}
				}
				r := x.Render(m, budget)
				out := m.Scan(r)
				if err := m.Lookups(ctx, r, out, set.Counter()); err != nil {
					return nil, err
				}
				sums[x.Name].add(m, r, out, budget)
				for i, n := range m.Refs {
					for _, stratum := range strata[i] {
						c.stratum(x.Name, stratum).addFound(out[i])
					}
					if x.Name == references.AutoName && !out[i].Bound {
						c.misses = append(c.misses, missOf(m, n, out[i], b.name))
					}
				}
			}
			var chance tally
			for seed := range uint64(references.RandomDraws) {
				r := references.Random(set.Counter(), seed).Render(m, budget)
				chance.add(m, r, m.Scan(r), budget)
			}
			chance.scale(1.0 / references.RandomDraws)
			if sums[references.RandomName] == nil {
				sums[references.RandomName] = &tally{}
			}
			sums[references.RandomName].sum(chance)
		}
		for name, t := range sums {
			c.tallies[name] = []tally{*t}
		}
	}
	return columns, nil
}

// strata are the kinds that a need belongs to.
func strataOf(m *references.Moment, n references.Need) []string {
	state := "state current"
	if m.Superseded(n.Reference) {
		state = "state superseded"
	}
	return []string{"type " + n.Type.String(), "age " + n.AgeName(), "origin " + n.Origin, state}
}

// referenceContenders are the contenders that scores refer to.
var referenceContenders = []string{references.WindowName, references.OracleName, references.BestSimple}
