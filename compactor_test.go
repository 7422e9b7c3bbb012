package palimpsest_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// firstWords is a summarizer for tests: the first words of each message, as
// many as fit.
type firstWords struct{ count func(string) int }

func (f firstWords) Summarize(_ context.Context, in summarize.Input) (summarize.Result, error) {
	var s summary.Summary
	for _, m := range in.Messages {
		words := strings.Fields(m.Text())
		next := s
		next.Facts = append(next.Facts[:len(next.Facts):len(next.Facts)], summary.Item{Text: strings.Join(words[:min(6, len(words))], " "), Turn: m.Turn})
		if f.count(next.Render()) > in.Budget {
			break
		}
		s = next
	}
	if f.count(s.Render()) > in.Budget {
		return summarize.Result{}, errors.New("no room")
	}
	return summarize.Result{Summary: s}, nil
}

// TestCompactHolds: whatever the thread, the budget, the ladder and the
// provider, a compaction covers every message once, keeps pairs whole, meets
// the budget or names what does not fit, and comes out the same again. A4, A12, A21
func TestCompactHolds(t *testing.T) {
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	policies := map[string]policy.Policy{"auto": policy.Auto{}, "seed": policy.Ladder{}}
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		name := rapid.SampledFrom([]string{"auto", "seed"}).Draw(rt, "ladder")
		api := rapid.SampledFrom([]string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini}).Draw(rt, "api")
		c, err := palimpsest.New(palimpsest.Config{Counter: counter, Policy: policies[name], Summarizer: firstWords{counter.Text}})
		if err != nil {
			rt.Fatal(err)
		}
		budget := rapid.IntRange(20, 6000).Draw(rt, "budget")
		q := palimpsest.Request{Thread: th, Budget: budget, Profile: render.For(api)}
		res, err := c.Compact(t.Context(), q)
		var over *palimpsest.BudgetError
		if errors.As(err, &over) {
			if len(over.Parts) == 0 || !errors.Is(err, palimpsest.ErrOverBudget) {
				rt.Fatalf("a refusal names no parts: %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		if got := counter.Prompt(res.Prompt); got != res.After || got > budget {
			rt.Fatalf("the request takes %d tokens, reported %d, budget %d", got, res.After, budget)
		}
		if err := res.Plan.Validate(th); err != nil {
			rt.Fatal(err)
		}
		if again, warnings := res.Plan.Normalize(); len(warnings) > 0 || !reflect.DeepEqual(again.Refs(), res.Plan.Refs()) {
			rt.Fatalf("the plan was not normal: %v", warnings)
		}
		for _, m := range res.Prompt.Messages {
			for _, p := range m.Parts {
				switch p.(type) {
				case thread.Reasoning, thread.Opaque: // what no codec can translate
					if p.From().API != api {
						rt.Fatalf("a part of %s is sent to %s", p.From().API, api)
					}
				}
			}
		}
		second, err := c.Compact(t.Context(), q)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(res.Prompt, second.Prompt) {
			rt.Fatal("the same input gave another prompt")
		}
		covered(rt, res, th.Len())
	})
}

func covered(rt *rapid.T, res *palimpsest.Result, messages int) {
	hidden := len(res.Manifest.Hidden)
	shown := 0
	for _, o := range res.Manifest.Messages {
		if o.Record.Action == plan.Include && o.ID != "" {
			shown++
		}
	}
	if hidden+shown > messages {
		rt.Fatalf("%d hidden and %d shown of %d messages: one is in both", hidden, shown, messages)
	}
}

// TestRenderWithoutPlan: before the first compaction there is no plan, and the
// thread is rendered as it is.
func TestRenderWithoutPlan(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	th, err := thread.New("short").Append(thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "hello"}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Render(nil, palimpsest.Request{Thread: th, Profile: render.For(wire.Chat)})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Prompt.Messages) != 1 || !res.Plan.Empty() || res.After != res.Before {
		t.Errorf("%d messages, %d of %d tokens", len(res.Prompt.Messages), res.After, res.Before)
	}
}

// keepsMost is a policy with rules of its own: it drops the oldest message, whatever the budget.
type keepsMost struct{ policy.Auto }

func (keepsMost) Name() string { return "keeps-most" }

func (keepsMost) Plan(_ context.Context, s *policy.Situation) (*policy.Fitted, error) {
	if s.Thread.Len() < 2 {
		return nil, policy.ErrNothing
	}
	p := s.Draft("keeps-most")
	p.Drops = []plan.Removal{{Span: s.Thread.Range(0, 1), Origin: plan.Origin{Strategy: "drop", Reason: "oldest"}}}
	return s.Render(p)
}

// TestCompactUsesPolicy: a single request is compacted by the policy of the Compactor. One that
// leaves more than the budget says so, with what it made. A17
func TestCompactUsesPolicy(t *testing.T) {
	log, err := thread.New("t").Append(plain(thread.User, strings.Repeat("old words ", 300)), plain(thread.Assistant, strings.Repeat("an answer ", 300)), plain(thread.User, "Go on."))
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Policy: keepsMost{}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: 700})
	if err != nil || res.Plan.Policy != "keeps-most" || len(res.Plan.Drops) != 1 || res.Plan.CompactedTokens != res.After {
		t.Errorf("it fits: %+v, %v", res, err)
	}
	res, err = c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: 100})
	if !errors.Is(err, palimpsest.ErrOverBudget) || res == nil || res.After <= 100 {
		t.Errorf("it is over the budget: %+v, %v", res, err)
	}
	res, err = c.Compact(t.Context(), palimpsest.Request{Thread: log.Prefix(1), Budget: 100})
	if !errors.Is(err, palimpsest.ErrOverBudget) || !errors.Is(err, policy.ErrNothing) || res != nil {
		t.Errorf("nothing is removed: %+v, %v", res, err)
	}
}

// TestCompactNote: the note stands in the prompt only once something is removed, in place of
// that of an earlier compaction, and both figures count it.
func TestCompactNote(t *testing.T) {
	log, err := thread.New("t").Append(plain(thread.User, strings.Repeat("old words ", 300)), plain(thread.Assistant, strings.Repeat("an answer ", 300)), plain(thread.User, "Go on."))
	if err != nil {
		t.Fatal(err)
	}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{}})
	if err != nil {
		t.Fatal(err)
	}
	note := render.RemovedNote + " Ask for it.]"
	q := palimpsest.Request{Thread: log, Base: &prompt.Prompt{System: []prompt.System{{Text: "You help."}, {Text: render.RemovedNote + " An earlier note.]"}}}, Note: note}
	for budget, want := range map[int]string{1 << 20: render.RemovedNote + " An earlier note.]", 1000: note} {
		q.Budget = budget
		res, err := c.Compact(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Prompt.System; len(got) != 2 || got[1].Text != want {
			t.Errorf("in %d tokens: %v", budget, got)
		}
		messages := 0
		for _, n := range res.PromptSizes {
			messages += n
		}
		if res.After != res.Fixed+messages || res.Plan.OriginalTokens != res.Before {
			t.Errorf("in %d tokens: %d after, %d fixed, %d of messages; the plan says %d of %d", budget, res.After, res.Fixed, messages, res.Plan.OriginalTokens, res.Before)
		}
	}
}
