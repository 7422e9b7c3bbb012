package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// DriftOptions tune Drift; nil and the zero value measure all long sessions.
type DriftOptions struct {
	// Split is the half to measure on; empty for all.
	Split Split
	// Contenders are the names of the policies to run; none for all.
	Contenders []string
	// Progress is told how many sessions are done.
	Progress Progress
}

// The chain of compactions: so many, each into driftBudget tokens of messages,
// with a twentieth of what follows the facts between them. At some of the rounds
// lookups are asked too.
const (
	driftRounds = 20
	driftBudget = 16_000
)

var askedRounds = []int{1, 5, 10, 15, 20}

// fewCuts is the number of compactions of the chain whose outcome is held against
// that of one compaction.
const fewCuts = 5

// chainFails says why a round of a chain made no plan; the one before then stays.
func chainFails(err error) bool {
	return errors.Is(err, policy.ErrNothing) || errors.Is(err, palimpsest.ErrNoRoom) || errors.Is(err, palimpsest.ErrOverBudget)
}

// Drift compacts conversations of at least 50,000 tokens twenty times in a row,
// with new material between, and asks after each round what is left of facts from
// the beginning: references that the agent uses again at the end, and canaries
// that are planted there. When the context ends first, the report is about the
// conversations done so far, nil for none, and the error wraps that of the context.
func Drift(ctx context.Context, set *Set, o *DriftOptions) (*DriftReport, error) {
	if o == nil {
		o = &DriftOptions{}
	}
	var chosen []policy.Policy
	for _, p := range policies() {
		if len(o.Contenders) == 0 || slices.Contains(o.Contenders, p.Name()) {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("eval.Drift: no policy is called %q", o.Contenders)
	}
	sessions := slices.DeleteFunc(slices.Clone(set.sessions), func(s *session) bool {
		return s.total < costly || len(s.steps) < 2*(driftRounds+1) || o.Split != "" && o.Split != All && s.split() != o.Split
	})
	if len(sessions) == 0 {
		return nil, fmt.Errorf("eval.Drift: no conversation of %d has 50,000 tokens and %d steps: too short for %d compactions", len(set.sessions), 2*(driftRounds+1), driftRounds)
	}
	slices.SortStableFunc(sessions, func(a, b *session) int { return cmp.Compare(b.total, a.total) })
	parts := make([][]*drifted, len(sessions))
	err := each(ctx, len(sessions), o.Progress, func(i int) error {
		p, err := newPlanted(sessions[i], set.counter)
		if err != nil {
			return err
		}
		var all []*drifted
		for _, pol := range chosen {
			d, err := p.drift(ctx, pol, set.counter)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", p.name, pol.Name(), err)
			}
			all = append(all, d)
		}
		parts[i] = all
		return nil
	})
	if err != nil {
		err = fmt.Errorf("eval.Drift: %w", err)
	}
	all := len(parts)
	sessions = done(sessions, func(i int) bool { return parts[i] != nil })
	parts = slices.DeleteFunc(parts, func(d []*drifted) bool { return d == nil })
	if len(parts) == 0 || err != nil && !brokenOff(ctx, err) {
		return nil, err
	}
	r := newDriftReport(chosen, parts)
	r.Corpus = corpusHash(slices.Values(sessions))
	r.Split, r.Left = cmp.Or(o.Split, All), all-len(parts)
	return r, err
}

// planted is a session with canaries at its beginning.
type planted struct {
	*session
	cuts  []int // the step before which each round compacts
	facts []need
	// trace is how many of the facts are of the session itself, the first ones,
	// unseen those of them that do not come up between the cuts.
	trace, unseen int
	canaries
	entries []recall.Entry
}

// newPlanted plants canaries and finds the facts that the session itself needs
// again: first seen before the first cut and used after the last.
func newPlanted(s *session, counter *token.Counter) (*planted, error) {
	p := &planted{canaries: newCanaries(s.name)}
	segment := max(1, len(s.steps)/(driftRounds+1))
	messages := make([]thread.Message, 0, s.thread.Len()+5*canaryGroups)
	done := 0
	for i, m := range uncopied.All(s.thread) {
		if step, is := slices.BinarySearch(s.steps, i); is && step > 0 && step <= segment && m.Role == thread.Assistant && uncopied.At(s.thread, i-1).Role != thread.Assistant {
			upTo := canaryGroups * step / segment
			for ; done < upTo; done++ {
				messages = append(messages, p.group(done)...)
			}
		}
		messages = append(messages, *m)
	}
	th, err := thread.New(s.thread.ID()).Append(messages...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	p.session, err = newSession(&transcript.Transcript{Name: s.name, Thread: th, Model: s.base.Model, System: s.base.System, Tools: s.base.Tools}, s.family, s.key, counter)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	known := map[string]bool{}
	for i := range s.refs {
		known[s.refs[i].Norm] = true
	}
	p.link(func(x ident.Ident) bool { return !known[x.Norm] })
	// The canaries bring steps of their own.
	first := 0
	for first < len(p.steps) && p.steps[first] < p.lastGroup(p.thread)+1 {
		first++
	}
	first = max(first, segment)
	for n := range driftRounds {
		p.cuts = append(p.cuts, first+n*(len(p.steps)-first)/driftRounds)
	}
	last := p.cuts[driftRounds-1]
	begin := p.steps[first]
	for _, n := range p.momentTo(last, len(p.steps)).refs {
		between := func(x sighting) bool { return x.pos >= begin && x.pos < p.steps[n.step] }
		if n.seen[0].pos >= begin {
			continue
		}
		p.facts = append(p.facts, n)
		if !slices.ContainsFunc(n.seen, between) {
			p.unseen++
		}
	}
	p.trace = len(p.facts)
	p.facts = append(p.facts, p.plant(p.session)...)
	p.entries = p.session.entries()
	return p, nil
}

// drifted is what one policy left of the facts of one session.
type drifted struct {
	trace, canaries, unseen int // how many facts there are
	rounds                  [driftRounds]survival
	told, mutated, failed   int
	// alike is what the chains of one and of five compactions both keep, either
	// what at least one of them keeps.
	alike, either int
	kinds         [canaryKinds]survival // after the last round
}

// survival counts the facts that stand in a prompt.
type survival struct {
	trace, canaries           int // bound in the prompt
	traceTotal, canariesTotal int // or brought by one lookup
	asked                     bool
	all                       int
	prompt, state             int // tokens of all, and of what is not as it was said
}

// drift runs the chains.
func (p *planted) drift(ctx context.Context, pol policy.Policy, counter *token.Counter) (*drifted, error) {
	d := &drifted{trace: p.trace, unseen: p.unseen, canaries: len(p.facts) - p.trace}
	every := make([]int, driftRounds)
	for n := range every {
		every[n] = n
	}
	_, err := p.chain(ctx, pol, counter, every, func(n int, m *moment, s *shown, out []found) error {
		x := &d.rounds[n]
		if x.asked = slices.Contains(askedRounds, n+1); x.asked {
			if err := m.lookups(ctx, s, out, counter); err != nil {
				return err
			}
		}
		if s.failed != nil {
			d.failed++
		}
		x.prompt, x.state = s.tokens, s.tokens
		for _, i := range s.kept {
			x.state -= p.sizes[i]
		}
		for i, f := range out {
			total := f.bound || f.lookup
			if i < p.trace {
				x.count(&x.trace, f.bound, &x.traceTotal, total)
				continue
			}
			x.count(&x.canaries, f.bound, &x.canariesTotal, total)
			if n == driftRounds-1 {
				k := &d.kinds[p.kindOf(i-p.trace)]
				k.all++
				k.count(&k.canaries, f.bound, &k.canariesTotal, total)
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
		if one[i].bound || five[i].bound {
			d.either++
		}
		if one[i].bound && five[i].bound {
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

// chain compacts at some of the rounds' cuts, and tells what each left. It
// returns what is found after the last.
func (p *planted) chain(ctx context.Context, pol policy.Policy, counter *token.Counter, rounds []int, each func(n int, m *moment, s *shown, out []found) error) ([]found, error) {
	r := &replay{session: p.session}
	h, err := r.handle(ctx, pol, counter)
	if err != nil {
		return nil, err
	}
	h.base.Model = "a-model"
	messages := uncopied.Messages(p.thread)
	var last []found
	for _, n := range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		at := p.steps[p.cuts[n]]
		step := palimpsest.Step{Base: &h.base, Messages: messages[h.seen:at], Profile: profile(), Budget: driftBudget + p.fixed}
		h.seen = at
		_, failed := h.thread.Compact(ctx, step, "")
		if failed != nil && !chainFails(failed) {
			return nil, failed
		}
		plan, _, err := h.plans.Current(ctx, p.thread.ID())
		if err != nil {
			return nil, err
		}
		m := &moment{session: p.session, at: at, tail: at, refs: p.facts, all: p.entries}
		s := m.show((forms{counter}).plain(m))
		if plan != nil {
			history := p.thread.Prefix(at)
			res, err := h.compactor.Render(plan, palimpsest.Request{Thread: history, Base: &h.base, Profile: profile()})
			if err != nil {
				return nil, err
			}
			s = m.shownBy(history, res.Prompt, res.Manifest, res.After-res.Fixed)
		}
		s.failed = failed
		last = m.scan(s)
		if each != nil {
			if err := each(n, m, s, last); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}
