package eval

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// noon dates every plan, so that the same input gives the same output.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// engine makes contenders of our own compactor. One is made per session, so that
// what it remembers of messages serves every moment of it.
type engine struct {
	ctx        context.Context
	counter    *token.Counter
	memo       *token.Memo
	summarizer summarize.Summarizer
	auto       *palimpsest.Compactor
}

func newEngine(ctx context.Context, counter *token.Counter) (*engine, error) {
	auto, err := palimpsest.New(palimpsest.Config{Counter: counter, Now: noon})
	return &engine{ctx, counter, token.NewMemo(counter, 0), &summarize.Extractive{Counter: counter.Text}, auto}, err
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
	return m.shownBy(history, res.Prompt, res.Manifest, res.After-res.Fixed)
}

// fitPolicy is the plan of a policy that was asked to compact, whether it finds
// that due or not. What it leaves over the budget is shown, not repaired.
func (e *engine) fitPolicy(p policy.Policy, m *moment, budget int) *shown {
	history := m.thread.Prefix(m.at)
	s, err := policy.Situate(policy.Situation{
		Thread: history, Base: m.base, Profile: profile(), Counter: e.counter, Count: e.memo.Message,
		Changed: m.sizes[:m.at], Plain: m.sizes[:m.at], Fixed: e.fixed(m),
		Window: budget + e.fixed(m), Budget: budget + e.fixed(m), Forced: true,
		Summarizer: e.summarizer, Tools: toolpolicy.New(nil), Now: noon(),
	})
	if err != nil {
		return m.nothing(err)
	}
	f, err := p.Plan(e.ctx, s)
	if err != nil {
		return m.nothing(err)
	}
	return m.shownBy(history, f.Prompt, f.Manifest, f.Tokens-s.Fixed)
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
func (m *moment) shownBy(history *thread.Thread, made *prompt.Prompt, manifest *render.Manifest, tokens int) *shown {
	s := &shown{tokens: tokens, removed: map[thread.ID]bool{}, pointed: map[thread.ID]bool{}}
	told := map[plan.Ref]bool{}
	for _, o := range manifest.Messages {
		told[o.Record] = true
	}
	for _, h := range manifest.Hidden {
		s.removed[h.ID] = true
		if told[h.Record] {
			s.pointed[h.ID] = true
		}
	}
	for n := range made.Messages {
		o := manifest.Messages[n]
		i, ok := history.Index(o.ID)
		if ok && !o.Synthetic && o.Record.Action == plan.Include && len(made.Messages[n].Parts) == len(uncopied.At(history, i).Parts) {
			s.kept = append(s.kept, i)
		} else {
			s.other = append(s.other, made.Messages[n])
		}
	}
	return s
}
