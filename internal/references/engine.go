package references

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

// PlanTime dates every plan, so that the same input gives the same output.
func PlanTime() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// engine makes contenders of our own compactor. One is made per session, so that
// what it remembers of messages serves every moment of it.
type engine struct {
	ctx        context.Context
	counter    *token.Counter
	memo       *token.Memo
	summarizer summarize.Summarizer
	auto       *palimpsest.Compactor
}

func NewEngine(ctx context.Context, counter *token.Counter) (*engine, error) {
	auto, err := palimpsest.New(palimpsest.Config{Counter: counter, Now: PlanTime})
	return &engine{ctx, counter, token.NewMemo(counter, 0), &summarize.Extractive{Counter: counter.Text}, auto}, err
}

// Profile is a provider with no rules of its own that would take anything away.
func Profile() render.Profile { return render.For(wire.Chat) }

func (e *engine) Contenders() []Contender {
	all := []Contender{{AutoName, e.fitAuto}}
	for _, p := range []policy.Policy{policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}} {
		all = append(all, Contender{p.Name(), func(m *Moment, budget int) *Shown { return e.fitPolicy(p, m, budget) }})
	}
	return all
}

// fitAuto is what `palimpsest compact --budget` does.
func (e *engine) fitAuto(m *Moment, budget int) *Shown {
	history := m.Thread.Prefix(m.At)
	fixed := e.fixed(m)
	res, err := e.auto.Compact(e.ctx, palimpsest.Request{Thread: history, Base: m.Base, Budget: budget + fixed, Profile: Profile()})
	if err != nil {
		return m.TailOnly(err)
	}
	return m.ShownBy(history, res.Prompt, res.Manifest, res.After-res.Fixed)
}

// fitPolicy is the plan of a policy that was asked to compact, whether it finds
// that due or not. What it leaves over the budget is shown, not repaired.
func (e *engine) fitPolicy(p policy.Policy, m *Moment, budget int) *Shown {
	history := m.Thread.Prefix(m.At)
	s, err := policy.Situate(policy.Situation{
		Thread: history, Base: m.Base, Profile: Profile(), Counter: e.counter, Count: e.memo.Message,
		ChangedSizes: m.Sizes[:m.At], PlainSizes: m.Sizes[:m.At], Fixed: e.fixed(m),
		Window: budget + e.fixed(m), Budget: budget + e.fixed(m), Forced: true,
		Summarizer: e.summarizer, Tools: toolpolicy.New(nil), Now: PlanTime(),
	})
	if err != nil {
		return m.TailOnly(err)
	}
	f, err := p.Plan(e.ctx, s)
	if err != nil {
		return m.TailOnly(err)
	}
	return m.ShownBy(history, f.Prompt, f.Manifest, f.Tokens-s.Fixed)
}

func (e *engine) fixed(m *Moment) int {
	return e.counter.Overhead() + e.counter.System(m.Base.System) + e.counter.Tools(m.Base.Tools)
}

// TailOnly shows the tail alone: what is left when a contender fails.
func (m *Moment) TailOnly(err error) *Shown {
	s := &Shown{Failed: err, Tokens: m.Rest}
	for i := m.Tail; i < m.At; i++ {
		s.Kept = append(s.Kept, i)
	}
	return s
}

// ShownBy tells apart what a prompt shows as it was and what it made.
func (m *Moment) ShownBy(history *thread.Thread, made *prompt.Prompt, manifest *render.Manifest, tokens int) *Shown {
	s := &Shown{Tokens: tokens, removed: map[thread.ID]bool{}, pointed: map[thread.ID]bool{}}
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
			s.Kept = append(s.Kept, i)
		} else {
			s.Other = append(s.Other, made.Messages[n])
		}
	}
	return s
}

// Policies are our own, auto in favor of cost.
func Policies() []policy.Policy {
	return []policy.Policy{policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}, policy.Auto{Favor: policy.FavorCost}}
}

// RefusalReason says why a provider would refuse a prompt; empty when it would not.
func RefusalReason(codec wire.Codec, p *prompt.Prompt) string {
	body, err := codec.Encode(p)
	if err != nil {
		return err.Error()
	}
	for _, problem := range codec.Validate(body) {
		if !problem.Advice {
			return problem.Path + ": " + problem.Rule + ": " + problem.Message
		}
	}
	return ""
}
