package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/token"
)

// CostOptions tune Cost; nil and the zero value measure all long sessions.
type CostOptions struct {
	// Split is the half to measure on; empty for all.
	Split Split
	// Model gives prices, cache rules and window. Nil is defaultCostModel.
	Model *token.Model
	// Around is what system and tools are taken to be where a record holds none,
	// in tokens: agents send them and mostly do not record them.
	Around int
	// Contenders are the names of those to run; none for all. No compaction, the
	// best schedules of those that run and the lower bound are always there.
	Contenders []string
	// Progress is told how many sessions are done.
	Progress Progress
}

// costly is the size from which a session is worth compacting at all, in tokens.
const costly = 50_000

// defaultCostModel is a model that the recorded agents used.
const defaultCostModel = "claude-sonnet-4-5"

// Cost replays sessions of at least 50,000 tokens request by request through
// every contender and bills them by the prices and the cache rules of a model.
// It is the same for the same set and options. When the context ends first, the
// report is about the conversations done so far, nil for none, and the error
// wraps that of the context.
func Cost(ctx context.Context, set *Set, o *CostOptions) (*CostReport, error) {
	if o == nil {
		o = &CostOptions{}
	}
	model := o.Model
	if model == nil {
		m, err := token.Models().Find(defaultCostModel)
		if err != nil {
			return nil, fmt.Errorf("eval.Cost: %w", err)
		}
		model = &m
	}
	for _, name := range o.Contenders {
		if !slices.Contains(costOrder, name) {
			return nil, fmt.Errorf("eval.Cost: no contender is called %q; known are %s", name, strings.Join(costOrder, "; "))
		}
	}
	if len(model.Prices) == 0 {
		return nil, fmt.Errorf("eval.Cost: no prices of the model %s are known; name another, or add them to a table of models", model.Name)
	}
	sessions := slices.DeleteFunc(slices.Clone(set.sessions), func(s *session) bool {
		return s.total < costly || o.Split != "" && o.Split != All && s.split() != o.Split
	})
	if len(sessions) == 0 {
		return nil, fmt.Errorf("eval.Cost: no conversation has %d tokens: nothing to compact", costly)
	}
	slices.SortStableFunc(sessions, func(a, b *session) int { return cmp.Compare(b.total, a.total) })
	parts := make([]*costs, len(sessions))
	err := each(ctx, len(sessions), o.Progress, func(i int) error {
		var err error
		parts[i], err = set.costs(ctx, sessions[i].surrounded(o.Around, set.counter), *model, o.Contenders)
		return err
	})
	if err != nil {
		err = fmt.Errorf("eval.Cost: %w", err)
	}
	all := len(parts)
	parts = slices.DeleteFunc(parts, func(c *costs) bool { return c == nil })
	if len(parts) == 0 || err != nil && !brokenOff(ctx, err) {
		return nil, err
	}
	r := newCostReport(set, parts, *model, o)
	r.Left = all - len(parts)
	return r, err
}

// surrounded is the session with a system prompt of so many tokens where the
// record holds none.
func (s *session) surrounded(around int, counter *token.Counter) *session {
	if s.fixed > 0 || around <= 0 {
		return s
	}
	same, base := *s, *s.base
	base.System = []prompt.System{{Text: strings.Repeat(" word", around)}}
	same.base, same.fixed = &base, counter.System(base.System)
	return &same
}

// costs is what one session came to, by contender.
type costs struct {
	name  string  // of the session
	whole float64 // the input without compaction
	spent map[string]*spent
}

func (set *Set) costs(ctx context.Context, s *session, m token.Model, contenders []string) (*costs, error) {
	wanted := func(name string) bool {
		return len(contenders) == 0 || name == noneName || slices.Contains(contenders, name)
	}
	r := newReplay(s, m, set.counter)
	c := &costs{name: s.name, spent: map[string]*spent{}}
	entries := s.entries()
	run := func(name string, send sender) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := r.spend(send)
		if err != nil {
			return err
		}
		if err := r.fetch(ctx, &x, entries, set.counter); err != nil {
			return err
		}
		x.cuts = nil
		c.spent[name] = &x
		return nil
	}
	for _, sp := range spenders(set.counter) {
		if !wanted(sp.name) {
			continue
		}
		if err := run(sp.name, sp.make(r)); err != nil {
			return nil, err
		}
	}
	c.whole = c.spent[noneName].input
	planned := func(name string, input float64, compactions int) {
		c.spent[name] = &spent{input: input, compactions: compactions}
	}
	input, n := r.best(func(k int) int {
		return r.fixed + tokens(r.fitting(r.asks[k].at, batchLeft))
	})
	planned(bestName, input, n)
	for _, p := range policies() {
		if !wanted(p.Name()) {
			continue
		}
		h, err := r.handle(ctx, p, set.counter)
		if err != nil {
			return nil, err
		}
		if err := run(p.Name(), h.send); err != nil {
			return nil, err
		}
		if p.Name() != autoName {
			continue
		}
		after, err := h.after()
		if err != nil {
			return nil, err
		}
		input, n := h.light().best(func(k int) int { return after[k] })
		planned(autoBestName, input, n)
	}
	planned(boundName, r.relaxed(), 0)
	return c, nil
}
