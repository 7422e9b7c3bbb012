package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Options tune Run; nil and the zero value measure everything.
type Options struct {
	// Split is the half to measure on; empty for all.
	Split references.Split
	// Contenders are the names of those to run; none for all. Those that the
	// scores refer to (random, sliding window, oracle, best simple) always run.
	Contenders []string
	// Budgets are the sizes to fit into, such as "8k", "16000" or "20%" of the
	// history; none for 8k, 16k, 20% and 10%.
	Budgets []string
	// Curve stands for the budgets of the area under the curve: 2k, 4k, 8k, 16k, 32k,
	// 5%, 10%, 20% and 40%. Budgets go before it.
	Curve bool
	// Others run beside the contenders that are built in, such as the other libraries
	// of lab/peers.
	Others []references.Contender
	// Progress is told how many sessions are done.
	Progress references.Progress
}

// Check reports a budget or contender that does not exist.
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

// Run measures recall. The result is the same for the same set and options, whatever
// the number of processors. When the context ends first, the report is about the
// conversations done so far, and the error wraps that of the context.
func Run(ctx context.Context, set *references.Set, o *Options) (*Report, error) {
	o = cmp.Or(o, &Options{})
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	settings, err := settings(set, o)
	if err != nil {
		return nil, fmt.Errorf("eval.Run: %w", err)
	}
	sessions := references.LargestFirst(set.OfSplit(o.Split, 0))
	parts, err := references.Map(ctx, sessions, o.Progress, func(s *references.Session) ([]*column, error) {
		return measure(ctx, set.Counter, s, settings, o)
	})
	if err != nil {
		err = fmt.Errorf("eval.Run: %w", err)
		if !references.IsCanceled(ctx, err) {
			return nil, err
		}
	}
	var columns []*column
	for k, b := range settings {
		c := newColumn(b)
		for _, part := range parts {
			if part[k] != nil {
				c.merge(part[k])
			}
		}
		if len(c.sessions) > 0 {
			columns = append(columns, c)
		}
	}
	r := newReport(set, columns, o)
	r.Read, r.Left = len(sessions), len(sessions)-len(parts)
	return r, err
}

func newColumn(b budgetSetting) *column {
	return &column{budgetSetting: b, tallies: map[string][]tally{}, strata: map[string]map[string]*tally{}}
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
	return entryOf(c.strata[contender], stratum)
}

// entryOf is the tally of a name, made where there is none yet.
func entryOf(tallies map[string]*tally, name string) *tally {
	if tallies[name] == nil {
		tallies[name] = &tally{}
	}
	return tallies[name]
}

// measure runs all contenders over one session; a column is nil where the session
// has no moment for it.
func measure(ctx context.Context, counter *token.Counter, s *references.Session, settings []budgetSetting, o *Options) ([]*column, error) {
	contenders, err := references.Contenders(ctx, counter)
	if err != nil {
		return nil, err
	}
	contenders = slices.DeleteFunc(contenders, func(c references.Contender) bool {
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
		moments := b.moments(s, at)
		if len(moments) == 0 {
			continue
		}
		c := newColumn(b)
		columns[k] = c
		c.sessions = []*references.Session{s}
		c.moments = len(moments)
		run := contenders
		if b.own {
			run = append(slices.Clip(contenders), references.OwnSummary())
		}
		sums := map[string]*tally{}
		for _, m := range moments {
			if err := c.measureMoment(ctx, m, run, counter, sums); err != nil {
				return nil, err
			}
		}
		for name, t := range sums {
			c.tallies[name] = []tally{*t}
		}
	}
	return columns, nil
}

// measureMoment adds to sums what the contenders reach at one moment.
func (c *column) measureMoment(ctx context.Context, m *references.Moment, contenders []references.Contender, counter *token.Counter, sums map[string]*tally) error {
	c.eligible += len(m.Needs)
	c.used += m.Used
	budget := c.budgetAt(m)
	strata := make([][]string, len(m.Needs))
	for i, n := range m.Needs {
		strata[i] = strataOf(m, n)
	}
	for _, x := range contenders {
		if err := ctx.Err(); err != nil {
			return err
		}
		shown := x.Fit(m, budget)
		found := m.Scan(shown)
		if err := m.Lookups(ctx, shown, found, counter); err != nil {
			return err
		}
		entryOf(sums, x.Name).add(m, shown, found, budget)
		for i, n := range m.Needs {
			for _, stratum := range strata[i] {
				c.stratum(x.Name, stratum).addFound(found[i])
			}
			if x.Name == references.AutoName && !found[i].Bound {
				c.misses = append(c.misses, missOf(m, n, found[i], c.name))
			}
		}
	}
	var chance tally
	for seed := range uint64(references.RandomDraws) {
		shown := references.Random(seed).Fit(m, budget)
		chance.add(m, shown, m.Scan(shown), budget)
	}
	chance.scale(1.0 / references.RandomDraws)
	entryOf(sums, references.RandomName).sum(chance)
	return nil
}

// strataOf are the kinds that a need belongs to.
func strataOf(m *references.Moment, n references.Need) []string {
	state := "state current"
	if m.Superseded(n.Reference) {
		state = "state superseded"
	}
	return []string{"type " + n.Type.String(), "age " + n.AgeName(), "origin " + n.Origin, state}
}

// referenceContenders are the contenders that scores refer to; they always run.
var referenceContenders = []string{references.WindowName, references.OracleName, references.BestSimple}
