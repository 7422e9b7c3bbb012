package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/eval/internal/budget"
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
	// Peers is a program and its arguments that has contenders of its own, such as
	// other libraries; docs/evaluation.md says what it reads and writes.
	Peers []string
	// Progress is told how many sessions are done.
	Progress Progress
}

// budget is what the history of a moment is fitted into.
func (m *moment) budget(b setting) int {
	if b.own {
		return m.recap.size + m.rest
	}
	return b.of(m.session, m.size)
}

// Check reports what in the options names nothing.
func (o *Options) Check() error {
	for _, text := range o.Budgets {
		if _, err := parseBudget(text); err != nil {
			return err
		}
	}
	for _, name := range o.Contenders {
		if !slices.Contains(order, name) {
			return fmt.Errorf("no contender is called %q; known are %s", name, strings.Join(order, "; "))
		}
	}
	return nil
}

// long is the size in tokens from which a session counts as long, least the
// history from which a share of it is a budget worth the name.
const (
	long  = 10_000
	least = 4_000
)

// moments is how many moments of a long session are measured at each budget.
const moments = 5

// setting is a column: a budget over a group of sessions.
type setting struct {
	name   string
	tokens int
	share  float64
	family string // for families of short sessions, else ""
	// own: where the agent itself compacted, at the size of its own summary.
	own bool
}

// of is the budget for a history of the given size. A share is one of the whole
// request, system and tools included; they are not charged to it.
func (b setting) of(s *session, size int) int {
	if b.tokens > 0 {
		return b.tokens
	}
	return int(b.share * float64(size+s.fixed))
}

func parseBudget(text string) (b setting, err error) {
	b.name = text
	b.tokens, b.share, err = budget.Parse(text)
	return b, err
}

// column is what one setting came to.
type column struct {
	setting
	// sessions and tallies run in parallel, by contender.
	sessions []*session
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
	if o == nil {
		o = &Options{}
	}
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	settings, err := set.settings(o)
	if err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	var others *peers
	if len(o.Peers) > 0 {
		if others, err = startPeers(ctx, o.Peers, set.counter); err != nil {
			return nil, fmt.Errorf("eval.Run: %w", err)
		}
		defer others.stop()
	}
	sessions := slices.DeleteFunc(slices.Clone(set.sessions), func(s *session) bool {
		return o.Split != "" && o.Split != All && s.split() != o.Split
	})
	// The largest first, so that none is waited for at the end.
	slices.SortStableFunc(sessions, func(a, b *session) int { return cmp.Compare(b.total, a.total) })
	parts := make([][]*column, len(sessions))
	err = each(ctx, len(sessions), o.Progress, func(i int) error {
		var err error
		parts[i], err = set.measure(ctx, sessions[i], settings, o, others)
		return err
	})
	if err != nil {
		err = fmt.Errorf("eval.Run: %w", err)
		if !brokenOff(ctx, err) {
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

func newColumn(b setting) *column {
	return &column{setting: b, tallies: map[string][]tally{}, strata: map[string]map[string]*tally{}}
}

// settings are the columns: the budgets for long sessions, a fifth of the history
// for each family of short ones.
func (set *Set) settings(o *Options) ([]setting, error) {
	budgets := o.Budgets
	switch {
	case len(budgets) > 0:
	case o.Curve:
		budgets = curveBudgets
	default:
		budgets = []string{"8k", "16k", "20%", "10%"}
	}
	var all []setting
	for _, text := range budgets {
		b, err := parseBudget(text)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	if len(o.Budgets) == 0 && !o.Curve {
		all = append(all, setting{name: "own summary", own: true})
	}
	count := map[string]int{}
	for _, s := range set.sessions {
		if s.total < long {
			count[s.family]++
		}
	}
	for _, s := range set.sessions {
		if count[s.family] >= fewest && set.short(s.family) {
			all = append(all, setting{name: s.family + " 20%", share: 0.2, family: s.family})
			count[s.family] = 0
		}
	}
	return all, nil
}

// short reports whether a family has no long session.
func (set *Set) short(family string) bool {
	return !slices.ContainsFunc(set.sessions, func(s *session) bool { return s.family == family && s.total >= long })
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
func (set *Set) measure(ctx context.Context, s *session, settings []setting, o *Options, others *peers) ([]*column, error) {
	e, err := newEngine(ctx, set.counter)
	if err != nil {
		return nil, err
	}
	contenders := slices.DeleteFunc(append(simple(set.counter), e.contenders()...), func(c contender) bool {
		return len(o.Contenders) > 0 && !slices.Contains(o.Contenders, c.name) && !slices.Contains(always, c.name)
	})
	contenders = append(contenders, others.contenders()...)
	known := map[int]*moment{}
	var entries []recall.Entry
	at := func(step int) *moment {
		if known[step] == nil {
			if entries == nil {
				entries = s.entries()
			}
			known[step] = s.moment(step)
			known[step].all = entries
		}
		return known[step]
	}
	columns := make([]*column, len(settings))
	for k, b := range settings {
		if b.family != "" && b.family != s.family {
			continue
		}
		cuts := s.moments(b, at)
		if len(cuts) == 0 {
			continue
		}
		c := newColumn(b)
		columns[k] = c
		c.sessions = []*session{s}
		c.moments = len(cuts)
		sums := map[string]*tally{}
		for _, m := range cuts {
			c.eligible += len(m.refs)
			c.used += m.used
			budget := m.budget(b)
			strata := make([][]string, len(m.refs))
			for i, n := range m.refs {
				strata[i] = m.strata(n)
			}
			contenders := contenders
			if b.own {
				contenders = append(slices.Clip(contenders), contender{ownName, func(m *moment, _ int) *shown {
					r := m.show(forms{set.counter}.plain(m)[m.tail:])
					r.other = append(r.other, m.recap.text)
					r.tokens += m.recap.size
					return r
				}})
			}
			for _, x := range contenders {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				if sums[x.name] == nil {
					sums[x.name] = &tally{}
				}
				r := x.render(m, budget)
				out := m.scan(r)
				if err := m.lookups(ctx, r, out, set.counter); err != nil {
					return nil, err
				}
				sums[x.name].add(m, r, out, budget)
				for i, n := range m.refs {
					for _, stratum := range strata[i] {
						c.stratum(x.name, stratum).one(out[i])
					}
					if x.name == autoName && !out[i].bound {
						c.misses = append(c.misses, m.miss(n, out[i], b.name))
					}
				}
			}
			var chance tally
			for seed := range uint64(randoms) {
				r := random(set.counter, seed).render(m, budget)
				chance.add(m, r, m.scan(r), budget)
			}
			chance.scale(1.0 / randoms)
			if sums[randomName] == nil {
				sums[randomName] = &tally{}
			}
			sums[randomName].sum(chance)
		}
		for name, t := range sums {
			c.tallies[name] = []tally{*t}
		}
	}
	return columns, nil
}

// strata are the kinds that a need belongs to.
func (m *moment) strata(n need) []string {
	state := "state current"
	if m.superseded(n.reference) {
		state = "state superseded"
	}
	return []string{"type " + n.Type.String(), "age " + n.ageName(), "origin " + n.origin, state}
}

const (
	randomName = "random"
	windowName = "sliding window"
	oracleName = "oracle"
	ownName    = "the agent's own summary"
)

// always are the contenders that scores refer to.
var always = []string{windowName, oracleName, bestSimple}
