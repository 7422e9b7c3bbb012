package eval

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// engineResult is what is needed to look up what a plan removed.
type engineResult struct {
	thread *thread.Thread
	plan   *plan.Plan
}

// noon dates every plan, so that the same input gives the same output.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// engine makes contenders of our own compactor. One is made per session, so that
// what it remembers of messages serves every moment of it.
type engine struct {
	ctx     context.Context
	counter *token.Counter
	auto    *palimpsest.Compactor
}

func newEngine(ctx context.Context, counter *token.Counter) (*engine, error) {
	auto, err := palimpsest.New(palimpsest.Config{Counter: counter, Now: noon})
	return &engine{ctx, counter, auto}, err
}

// profile is a provider with no rules of its own that would take anything away.
func profile() render.Profile { return render.For(wire.Chat) }

func (e *engine) contenders() []contender {
	all := []contender{{autoName, e.fitAuto}}
	for _, p := range []policy.Policy{policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}} {
		all = append(all, contender{p.Name(), func(m *moment, budget int) *shown { return e.fitPolicy(p, m, budget) }})
	}
	return all
}

const autoName = "auto"

// fitAuto is what `palimpsest compact --budget` does.
func (e *engine) fitAuto(m *moment, budget int) *shown {
	history := m.thread.Prefix(m.at)
	fixed := e.fixed(m)
	res, err := e.auto.Compact(e.ctx, palimpsest.Request{Thread: history, Base: m.base, Budget: budget + fixed, Profile: profile()})
	if err != nil {
		return m.nothing(err)
	}
	return m.shownBy(history, res.Plan, res.Prompt, res.Manifest, res.After-res.Fixed)
}

// fitPolicy compacts with a policy through the thread handle, as an agent loop
// does when it asks for it.
func (e *engine) fitPolicy(p policy.Policy, m *moment, budget int) *shown {
	c, err := palimpsest.New(palimpsest.Config{Counter: e.counter, Policy: p, Now: noon})
	if err != nil {
		return m.nothing(err)
	}
	history := m.thread.Prefix(m.at)
	th := c.Thread(history.ID())
	if err := th.Append(e.ctx, history.Messages()...); err != nil {
		return m.nothing(err)
	}
	made, err := th.Compact(e.ctx, palimpsest.Step{Base: m.base, Profile: profile(), Budget: budget + e.fixed(m)})
	if err != nil {
		return m.nothing(err)
	}
	res, err := c.Render(made, palimpsest.Request{Thread: history, Base: m.base, Profile: profile()})
	if err != nil {
		return m.nothing(err)
	}
	return m.shownBy(history, made, res.Prompt, res.Manifest, res.After-res.Fixed)
}

func (e *engine) fixed(m *moment) int {
	return e.counter.Overhead() + e.counter.System(m.base.System) + e.counter.Tools(m.base.Tools)
}

// nothing is what is left when a contender fails: the tail.
func (m *moment) nothing(err error) *shown {
	s := &shown{failed: err, tokens: m.rest}
	for i := m.tail; i < m.at; i++ {
		s.kept = append(s.kept, i)
	}
	return s
}

// shownBy tells apart what a prompt shows as it was and what it made.
func (m *moment) shownBy(history *thread.Thread, p *plan.Plan, made *prompt.Prompt, manifest *render.Manifest, tokens int) *shown {
	s := &shown{tokens: tokens, engine: &engineResult{history, p}}
	for n := range made.Messages {
		o := manifest.Messages[n]
		i, ok := history.Index(o.ID)
		if ok && !o.Synthetic && o.Record.Action == plan.Include && len(made.Messages[n].Parts) == len(history.At(i).Parts) {
			s.kept = append(s.kept, i)
		} else {
			s.other = append(s.other, made.Messages[n])
		}
	}
	return s
}
