// Package drift compacts long conversations many times in a row and asks what is
// left of facts from their beginning.
package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Options tune Measure; nil and the zero value measure all long sessions.
type Options struct {
	// Split is the half to measure on; empty for all.
	Split references.Split
	// Contenders are the names of the policies to run; none for all.
	Contenders []string
	// Progress is told how many sessions are done.
	Progress references.Progress
}

// The chain of compactions: driftRounds of them, each into driftBudget tokens of
// messages, evenly spread over what follows the facts. At askedRounds lookups are asked
// too.
const (
	driftRounds = 20
	driftBudget = 16_000
	longEnough  = 50_000 // tokens of a conversation
)

var askedRounds = []int{1, 5, 10, 15, 20}

// fewCuts is the number of compactions in the chain that is compared with one
// compaction.
const fewCuts = 5

// chainFails reports whether an error means that a round makes no plan, so that the one
// before stays in force.
func chainFails(err error) bool {
	return errors.Is(err, policy.ErrNothing) || errors.Is(err, palimpsest.ErrNoRoom) || errors.Is(err, policy.ErrOverBudget)
}

// Measure compacts conversations of at least 50,000 tokens twenty times in a row,
// with new material between, and asks after each round what is left of facts from
// the beginning: references that the agent uses again at the end, and canaries
// that are planted there. When the context ends first, the report is about the
// conversations done so far, nil for none, and the error wraps that of the context.
func Measure(ctx context.Context, set *references.Set, o *Options) (*Report, error) {
	o = cmp.Or(o, &Options{})
	var chosen []policy.Policy
	for _, p := range references.Policies() {
		if len(o.Contenders) == 0 || slices.Contains(o.Contenders, p.Name()) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("drift.Measure: no policy is called %q", o.Contenders)
	}
	sessions := slices.DeleteFunc(references.LargestFirst(set.OfSplit(o.Split, longEnough)), func(s *references.Session) bool { return len(s.Steps) < 2*(driftRounds+1) })
	if len(sessions) == 0 {
		return nil, fmt.Errorf("drift.Measure: no conversation of %d has 50,000 tokens and %d steps: too short for %d compactions", len(set.Sessions), 2*(driftRounds+1), driftRounds)
	}
	type part struct {
		session *references.Session
		drifted []*drifted // by policy
	}
	parts, err := references.Map(ctx, sessions, o.Progress, func(s *references.Session) (part, error) {
		p, err := newPlanted(s, set.Counter)
		if err != nil {
			return part{}, err
		}
		one := part{session: s}
		for _, pol := range chosen {
			d, err := p.drift(ctx, pol, set.Counter)
			if err != nil {
				return part{}, fmt.Errorf("%s, %s: %w", p.Name, pol.Name(), err)
			}
			one.drifted = append(one.drifted, d)
		}
		return one, nil
	})
	if err != nil {
		err = fmt.Errorf("drift.Measure: %w", err)
	}
	if len(parts) == 0 || err != nil && !references.IsCanceled(ctx, err) {
		return nil, err
	}
	var all [][]*drifted
	var measured []*references.Session
	for _, p := range parts {
		all, measured = append(all, p.drifted), append(measured, p.session)
	}
	r := newReport(chosen, all)
	r.Corpus = references.CorpusHash(slices.Values(measured))
	r.Split, r.Left = cmp.Or(o.Split, references.All), len(sessions)-len(parts)
	return r, err
}

// planted is a session with canaries at its beginning.
type planted struct {
	*references.Session
	cuts  []int // the step before which each round compacts
	facts []references.Need
	// trace counts the facts of the session itself, which come first; unseen those of them
	// that do not come up between the cuts.
	trace, unseen int
	canaries
	entries []recall.Entry
}

// newPlanted plants canaries and finds the facts that the session itself needs
// again: first seen before the first cut and used after the last.
func newPlanted(s *references.Session, counter *token.Counter) (*planted, error) {
	p := &planted{canaries: newCanaries(s.Name)}
	segment := max(1, len(s.Steps)/(driftRounds+1))
	messages := make([]thread.Message, 0, s.Thread.Len()+5*canaryGroups)
	done := 0
	for i, m := range s.Thread.All() {
		if step, is := slices.BinarySearch(s.Steps, i); is && step > 0 && step <= segment && m.Role == thread.Assistant && s.Thread.At(i-1).Role != thread.Assistant {
			upTo := canaryGroups * step / segment
			for ; done < upTo; done++ {
				messages = append(messages, p.group(done)...)
			}
		}
		messages = append(messages, *m)
	}
	th, err := thread.New(s.Thread.ID()).Append(messages...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	p.Session, err = references.NewSession(&transcript.Transcript{Name: s.Name, Thread: th, Model: s.Base.Model, System: s.Base.System, Tools: s.Base.Tools}, s.Family, s.Key, counter)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	known := map[string]bool{}
	for i := range s.Refs {
		known[s.Refs[i].Norm] = true
	}
	p.Link(func(x ident.Ident) bool { return !known[x.Norm] })
	// The canaries bring steps of their own.
	first := 0
	for first < len(p.Steps) && p.Steps[first] < p.lastGroup(p.Thread)+1 {
		first++
	}
	first = max(first, segment)
	for n := range driftRounds {
		p.cuts = append(p.cuts, first+n*(len(p.Steps)-first)/driftRounds)
	}
	last := p.cuts[driftRounds-1]
	begin := p.Steps[first]
	for _, n := range p.MomentTo(last, len(p.Steps)).Needs {
		between := func(x references.Sighting) bool { return x.Pos >= begin && x.Pos < p.Steps[n.Step] }
		if n.Seen[0].Pos >= begin {
			continue
		}
		p.facts = append(p.facts, n)
		if !slices.ContainsFunc(n.Seen, between) {
			p.unseen++
		}
	}
	p.trace = len(p.facts)
	p.facts = append(p.facts, p.plant(p.Session)...)
	p.entries = p.Session.Entries()
	return p, nil
}

// drifted is what one policy left of the facts of one session.
type drifted struct {
	trace, canaries, unseen int // how many facts there are
	rounds                  [driftRounds]survival
	told, mutated, failed   int
	// alike counts the facts that the chains of one and of five compactions both keep,
	// either those that at least one of them keeps.
	alike, either int
	kinds         [canaryKinds]survival // after the last round
}

// survival counts the facts that stand in a prompt.
type survival struct {
	trace, canaries           int // bound in the prompt
	traceTotal, canariesTotal int // or brought by one lookup
	asked                     bool
	all                       int
	prompt, state             int // tokens of the prompt, and of what the policy wrote in it
}

// drift runs the chains.
func (p *planted) drift(ctx context.Context, pol policy.Policy, counter *token.Counter) (*drifted, error) {
	d := &drifted{trace: p.trace, unseen: p.unseen, canaries: len(p.facts) - p.trace}
	every := make([]int, driftRounds)
	for n := range every {
		every[n] = n
	}
	_, err := p.chain(ctx, pol, counter, every, func(n int, m *references.Moment, s *references.Shown, out []references.Found) error {
		x := &d.rounds[n]
		if x.asked = slices.Contains(askedRounds, n+1); x.asked {
			if err := m.Lookups(ctx, s, out, counter); err != nil {
				return err
			}
		}
		if s.Failed != nil {
			d.failed++
		}
		x.prompt, x.state = s.Tokens, s.Tokens
		for _, i := range s.Kept {
			x.state -= p.Sizes[i]
		}
		for i, f := range out {
			total := f.Bound || f.Lookup
			if i < p.trace {
				x.count(&x.trace, f.Bound, &x.traceTotal, total)
				continue
			}
			x.count(&x.canaries, f.Bound, &x.canariesTotal, total)
			if n == driftRounds-1 {
				k := &d.kinds[p.kindOf(i-p.trace)]
				k.all++
				k.count(&k.canaries, f.Bound, &k.canariesTotal, total)
			}
		}
		told, mutated := p.mutated(s)
		d.told += told
		d.mutated += mutated
		return nil
	})
	if err != nil {
		return nil, err
	}
	var few []int
	for n := range fewCuts {
		few = append(few, (n+1)*driftRounds/fewCuts-1)
	}
	five, err := p.chain(ctx, pol, counter, few, nil)
	if err != nil {
		return nil, err
	}
	one, err := p.chain(ctx, pol, counter, []int{driftRounds - 1}, nil)
	if err != nil {
		return nil, err
	}
	for i := range one {
		if one[i].Bound || five[i].Bound {
			d.either++
		}
		if one[i].Bound && five[i].Bound {
			d.alike++
		}
	}
	return d, nil
}

func (x *survival) count(bound *int, isBound bool, total *int, isTotal bool) {
	if isBound {
		*bound++
	}
	if isTotal {
		*total++
	}
}

// chain compacts at the cuts of some rounds, and calls each after every one. It returns
// what is found after the last.
func (p *planted) chain(ctx context.Context, pol policy.Policy, counter *token.Counter, rounds []int, each func(n int, m *references.Moment, s *references.Shown, out []references.Found) error) ([]references.Found, error) {
	var plans store.Memory
	compactor, err := palimpsest.New(palimpsest.Config{Policy: pol, Counter: counter, Store: store.Tenant{Log: &plans, Plans: &plans}, Recall: &palimpsest.Recall{}, Now: references.PlanTime})
	if err != nil {
		return nil, err
	}
	working, base, done := compactor.Session(p.Thread.ID()), *p.Base, 0
	base.Model = "a-model"
	messages := p.Thread.Messages()
	var last []references.Found
	for _, n := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := p.Steps[p.cuts[n]]
		step := palimpsest.Step{Base: &base, Messages: messages[done:at], Profile: references.Profile(), Budget: driftBudget + p.Fixed, OwnTarget: true}
		done = at
		_, failed := working.Compact(ctx, step, "")
		if failed != nil && !chainFails(failed) {
			return nil, failed
		}
		plan, _, err := plans.Current(ctx, p.Thread.ID())
		if err != nil {
			return nil, err
		}
		m := &references.Moment{Session: p.Session, At: at, Tail: at, Needs: p.facts, Entries: p.entries}
		s := m.Whole()
		if plan != nil {
			history := p.Thread.Prefix(at)
			res, err := compactor.Render(plan, palimpsest.Request{Thread: history, Base: &base, Profile: references.Profile()})
			if err != nil {
				return nil, err
			}
			s = m.ShownBy(history, res.Prompt, res.Manifest, res.After-res.Fixed)
		}
		s.Failed = failed
		last = m.Scan(s)
		if each != nil {
			if err := each(n, m, s, last); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}
