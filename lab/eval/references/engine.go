package references

import (
	"context"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// PlanTime is the date of every plan, so that the same input gives the same output.
func PlanTime() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// Profile is a provider that has no rules of its own by which content would go.
func Profile() render.Profile { return render.For(wire.Chat) }

// policyContenders are our own policies.
func policyContenders(ctx context.Context, counter *token.Counter) ([]Contender, error) {
	var all []Contender
	// These do what `palimpsest compact --budget` does.
	for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}} {
		c, err := palimpsest.New(palimpsest.Config{Counter: counter, Policy: p, Now: PlanTime})
		if err != nil {
			return nil, err
		}
		all = append(all, Contender{p.Name(), func(m *Moment, budget int) *Shown {
			history, fixed := m.Thread.Prefix(m.At), counter.Overhead()+m.Fixed
			res, err := c.Compact(ctx, palimpsest.Request{Thread: history, Base: m.Base, Budget: budget + fixed, Profile: Profile()})
			if err != nil {
				return m.TailOnly(err)
			}
			return m.ShownBy(history, res.Prompt, res.Manifest, res.After-res.Fixed)
		}})
	}
	counter = counter.Remembering(nil)
	summarizer := &summarize.Extractive{Counter: counter.Text}
	// The others make the plan of a compaction that was asked for, due or not. What it
	// leaves over the budget is shown, not repaired.
	for _, p := range []policy.Policy{policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}} {
		all = append(all, Contender{p.Name(), func(m *Moment, budget int) *Shown {
			history, fixed := m.Thread.Prefix(m.At), counter.Overhead()+m.Fixed
			s, err := policy.Situate(policy.Situation{
				Thread: history, Base: m.Base, Profile: Profile(), Counter: counter,
				ChangedSizes: m.Sizes[:m.At], PlainSizes: m.Sizes[:m.At], Fixed: fixed,
				Window: budget + fixed, Budget: budget + fixed, Forced: true,
				Summarizer: summarizer, Tools: toolpolicy.New(nil), Now: PlanTime(),
			})
			if err != nil {
				return m.TailOnly(err)
			}
			f, err := p.Plan(ctx, s)
			if err != nil {
				return m.TailOnly(err)
			}
			return m.ShownBy(history, f.Prompt, f.Manifest, f.Tokens-s.Fixed)
		}})
	}
	return all, nil
}

// ShownBy is what a rendered prompt leaves of the history. Tokens is its size without
// system and tools.
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
		if ok && !o.Synthetic && o.Record.Action == plan.Include && len(made.Messages[n].Parts) == len(history.At(i).Parts) {
			s.Kept = append(s.Kept, i)
		} else {
			s.Other = append(s.Other, made.Messages[n])
		}
	}
	return s
}

// Policies are our own policies, with auto and notes in favor of cost.
func Policies() []policy.Policy {
	return []policy.Policy{policy.Ladder{}, policy.Session{}, policy.Timeline{}, policy.Workstream{}, policy.Loop{}, policy.Auto{Favor: policy.FavorCost}, policy.Notes{Auto: policy.Auto{Favor: policy.FavorCost}}}
}

// RefusalReason is the first rule of its API that a prompt breaks; empty for none.
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
