package eval

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/token"
)

// CostOptions tune Cost; nil and the zero value measure all long sessions.
type CostOptions struct {
	// Split is the half to measure on; empty for all.
	Split references.Split
	// Model gives prices, cache rules and window. Nil is defaultCostModel.
	Model *token.Model
	// Around is the size of system and tools where a record has none, in tokens: agents
	// send them and mostly do not record them.
	Around int
	// Gaps says how far apart requests are, which decides when a cache expires:
	// RecordedGaps, FixedGaps or LognormalGaps; empty is the first.
	Gaps string
	// Curve runs the contenders that have a size at several, for lines of recall
	// over cost. It takes several times as long.
	Curve bool
	// Contenders are the names of those to run; none for all. No compaction, the best
	// schedules of those that run, and the lower bound are always measured.
	Contenders []string
	// Progress is told how many sessions are done.
	Progress references.Progress
}

// The kinds of times between requests. Recorded times are 20 seconds where the record
// has none; the others ignore the record.
const (
	RecordedGaps  = "recorded"
	FixedGaps     = "fixed"
	LognormalGaps = "lognormal"
)

// minCostTokens is the size of the smallest session that is worth compacting.
const minCostTokens = 50_000

// defaultCostModel is a model that recorded agents used.
const defaultCostModel = "claude-sonnet-4-5"

// autoLeft is the size that auto leaves in favor of cost (policy.Auto.Working), in
// tokens.
const autoLeft = 20_000

// Check reports a contender or kind of gaps that does not exist.
func (o *CostOptions) Check() error {
	for _, name := range o.Contenders {
		if !slices.Contains(costOrder, name) {
			return fmt.Errorf("no contender is called %q; known are %s", name, strings.Join(costOrder, "; "))
		}
	}
	switch o.Gaps {
	case "", RecordedGaps, FixedGaps, LognormalGaps:
		return nil
	}
	return fmt.Errorf("gaps %q: want %s, %s or %s", o.Gaps, RecordedGaps, FixedGaps, LognormalGaps)
}

// Cost replays sessions of at least 50,000 tokens request by request through
// every contender and bills them by the prices and the cache rules of a model.
// It is the same for the same set and options. When the context ends first, the
// report is about the conversations done so far, nil for none, and the error
// wraps that of the context.
func Cost(ctx context.Context, set *references.Set, o *CostOptions) (*CostReport, error) {
	o = cmp.Or(o, &CostOptions{})
	model := o.Model
	if model == nil {
		m, err := token.Models().Find(defaultCostModel)
		if err != nil {
			return nil, fmt.Errorf("eval.Cost: %w", err)
		}
		model = &m
	}
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("eval.Cost: %w", err)
	}
	if len(model.Prices) == 0 {
		return nil, fmt.Errorf("eval.Cost: no prices of the model %s are known; name another, or add them to a table of models", model.Name)
	}
	sessions := references.LargestFirst(set.OfSplit(o.Split, minCostTokens))
	if len(sessions) == 0 {
		return nil, fmt.Errorf("eval.Cost: no conversation of %d has 50,000 tokens: too short to be worth compacting", len(set.Sessions))
	}
	parts, err := references.Map(ctx, sessions, o.Progress, func(s *references.Session) (*costs, error) {
		return costsOf(ctx, set.Counter, withSystemTokens(s, o.Around, set.Counter), *model, o)
	})
	if err != nil {
		err = fmt.Errorf("eval.Cost: %w", err)
	}
	if len(parts) == 0 || err != nil && !references.IsCanceled(ctx, err) {
		return nil, err
	}
	r := newCostReport(set, parts, *model, o)
	r.Left = len(sessions) - len(parts)
	return r, err
}

// withSystemTokens is the session with a system prompt of so many tokens where the
// record holds none.
func withSystemTokens(s *references.Session, around int, counter *token.Counter) *references.Session {
	if s.Fixed > 0 || around <= 0 {
		return s
	}
	same, base := *s, *s.Base
	base.System = []prompt.System{{Text: strings.Repeat(" word", around)}}
	same.Base, same.Fixed = &base, counter.System(base.System)
	return &same
}

// costs are the costs of one session, by contender.
type costs struct {
	session *references.Session
	whole   float64 // the input without compaction
	names   []string
	spent   map[string]*sessionCost
	// lines and sizes are of the contenders that send requests.
	lines, sizes map[string]string
}

// policyContender is a policy as a contender.
type policyContender struct {
	name, line, size string
	policy           policy.Policy
}

// policyContenders are the policies, auto with its other favors and, for a curve, auto
// with other sizes.
func policyContenders(curve bool) (all []policyContender) {
	for _, p := range references.Policies() {
		size := ""
		if p.Name() == references.AutoName {
			size = thousand(autoLeft)
		}
		all = append(all, policyContender{p.Name(), p.Name(), size, p})
	}
	auto := func(name, size string, p policy.Auto) {
		all = append(all, policyContender{name, references.AutoName, size, p})
	}
	auto(balancedName, string(policy.FavorBalanced), policy.Auto{Favor: policy.FavorBalanced})
	all = append(all, policyContender{notesBalancedName, notesBalancedName, "", policy.Notes{}})
	auto(qualityName, string(policy.FavorQuality), policy.Auto{Favor: policy.FavorQuality})
	if curve {
		for _, left := range slices.Concat(curveLeft, curveMore) {
			auto(autoOf(left), thousand(left), policy.Auto{Favor: policy.FavorCost, Working: left})
		}
	}
	return all
}

func costsOf(ctx context.Context, counter *token.Counter, s *references.Session, m token.Model, o *CostOptions) (*costs, error) {
	// The other sizes of a line run with the contender that it belongs to.
	lines := map[string]bool{}
	wanted := func(name, line string) bool {
		is := len(o.Contenders) == 0 || name == noneName || slices.Contains(o.Contenders, name) || lines[line] && !slices.Contains(costOrder, name)
		lines[line] = lines[line] || is
		return is
	}
	r := newReplay(s, m, o.Gaps, counter)
	c := &costs{session: s, spent: map[string]*sessionCost{}, lines: map[string]string{}, sizes: map[string]string{}}
	entries := s.Entries()
	run := func(name, line, size string, send sender) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		x, err := r.spend(send)
		if err != nil {
			return err
		}
		if err := r.billLookups(ctx, &x, entries, counter); err != nil {
			return err
		}
		x.cuts = nil
		c.lines[name], c.sizes[name] = line, size
		c.add(name, &x)
		return nil
	}
	for _, x := range costContenders(counter, o.Curve) {
		if !wanted(x.name, x.line) {
			continue
		}
		if err := run(x.name, x.line, x.size, x.make(r)); err != nil {
			return nil, err
		}
	}
	c.whole = c.spent[noneName].input
	c.add(noCacheName, &sessionCost{input: r.uncachedCost()})
	c.add(bestName, r.cheapestSchedule(func(k int) int {
		return r.Fixed + tokens(r.fittingBlocks(r.requests[k].at, batchLeft))
	}))
	for _, p := range policyContenders(o.Curve) {
		if !wanted(p.name, p.line) {
			continue
		}
		h, err := r.agentLoop(ctx, p.policy, counter)
		if err != nil {
			return nil, err
		}
		if err := run(p.name, p.line, p.size, h.send); err != nil {
			return nil, err
		}
		if p.name != references.AutoName {
			continue
		}
		after, err := h.sizesAfter()
		if err != nil {
			return nil, err
		}
		c.add(autoBestName, h.cheapestSchedule(func(k int) int { return after[k] }))
	}
	c.add(boundName, &sessionCost{input: r.lowerBound()})
	return c, nil
}

func (c *costs) add(name string, x *sessionCost) {
	c.spent[name] = x
	c.names = append(c.names, name)
}
