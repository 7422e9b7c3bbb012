package palimpsest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// foreign runs an agent against a provider whose tokens are smaller than ours:
// it counts factor times what we do, and reports it.
func foreign(t *testing.T, p policy.Policy, factor float64, steps int) (worst int, told *recorder, th *palimpsest.Session) {
	t.Helper()
	told = &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Policy: p, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	counter := o200k(t)
	th = c.Session("foreign")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	for n := range steps {
		out, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		input := int(float64(counter.Prompt(out.Prompt)) * factor)
		if n > 5 {
			worst = max(worst, input)
			if off := float64(out.Tokens)/float64(input) - 1; off < -0.05 || off > 0.05 {
				t.Errorf("step %d, plan %d: %d tokens, the provider counts %d", n, out.PlanVersion, out.Tokens, input)
			}
		}
		call, result := work(n)
		if err := th.FinishStep(t.Context(), out, wire.Usage{Input: input, Known: true}, call); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{result}
	}
	return worst, told, th
}

// TestUsageCorrectsTheCounter: what the provider counts decides when a thread is
// compacted and how far, for policies that count with our counter. A12, A13
func TestUsageCorrectsTheCounter(t *testing.T) {
	for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{MaxInputTokens: loopBudget, Target: 1}, policy.Timeline{}} {
		for _, factor := range []float64{1.4, 1, 0.7} {
			t.Run(fmt.Sprintf("%s/%v", p.Name(), factor), func(t *testing.T) {
				worst, told, _ := foreign(t, p, factor, 50)
				if most := loopBudget; worst > most {
					t.Errorf("the provider saw %d tokens, the budget is %d", worst, most)
				}
				if told.count(event.Completed) == 0 {
					t.Error("nothing was compacted")
				}
				if factor == 0.7 && worst < loopBudget*6/10 {
					t.Errorf("the provider saw at most %d tokens of %d: the window is not used", worst, loopBudget)
				}
			})
		}
	}
}

// TestUsageOfMoreThanThePrompt: a count that holds what the provider's own tools
// brought corrects nothing.
func TestUsageOfMoreThanThePrompt(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	counter, ctx := o200k(t), t.Context()
	th := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{
		plain(thread.User, "Tidy the queue.\n"+strings.Repeat("0x1f 0x2e 0x3d\n", 500)),
	}}
	out, err := th.PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	if err := th.FinishStep(ctx, out, wire.Usage{Input: 3 * counter.Prompt(out.Prompt), Known: true, Mixed: true}, plain(thread.Assistant, "Done.")); err != nil {
		t.Fatal(err)
	}
	step.Messages = []thread.Message{plain(thread.User, "Go on.")}
	if out, err = th.PrepareStep(ctx, step); err != nil || out.Tokens >= 2*counter.Prompt(out.Prompt) {
		t.Errorf("%d tokens, %v", out.Tokens, err)
	}
	if n := told.count(event.Completed); n != 0 {
		t.Errorf("%d compactions", n)
	}
}

// TestUsageIsNotAnotherTrigger: a figure from before a compaction says nothing
// about the request after it. The provider counts one huge message as three
// times its size; once that message is gone, the old figure must not have the
// small rest compacted.
func TestUsageIsNotAnotherTrigger(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	counter := o200k(t)
	ctx := t.Context()
	th := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	if _, err := th.PrepareStep(ctx, step); err != nil {
		t.Fatal(err)
	}
	call, _ := work(0)
	if err := th.FinishStep(ctx, nil, wire.Usage{}, call); err != nil {
		t.Fatal(err)
	}
	step.Messages = []thread.Message{toolMessage("call_0", strings.Repeat("0x1f 0x2e 0x3d\n", 500))}
	out, err := th.PrepareStep(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	before := told.count(event.Completed)
	input := 3 * counter.Prompt(out.Prompt)
	if input < loopBudget || before != 0 {
		t.Fatalf("the test is set up wrong: %d tokens, %d compactions", input, before)
	}
	if err := th.FinishStep(ctx, out, wire.Usage{Input: input, Known: true}, plain(thread.Assistant, "I read it.")); err != nil {
		t.Fatal(err)
	}
	step.Messages = []thread.Message{plain(thread.User, "Go on.")}
	if _, err = th.PrepareStep(ctx, step); err != nil {
		t.Fatal(err)
	}
	if told.count(event.Completed) != 1 {
		t.Fatalf("the figure set off %d compactions, want 1", told.count(event.Completed))
	}
	for n := range 3 {
		if err := th.FinishStep(ctx, nil, wire.Usage{}, plain(thread.Assistant, "Done.")); err != nil {
			t.Fatal(err)
		}
		step.Messages = []thread.Message{plain(thread.User, fmt.Sprint("And part ", n))}
		if _, err = th.PrepareStep(ctx, step); err != nil {
			t.Fatal(err)
		}
	}
	if n := told.count(event.Completed); n != 1 {
		t.Errorf("%d compactions: the figure from before the first set off more", n)
	}
}

// writes counts how often documents are written.
type writes struct {
	*store.Memory
	n *int
}

func (w writes) Put(ctx context.Context, d store.Document) (int, error) {
	*w.n++
	return w.Memory.Put(ctx, d)
}

// TestUsageOutlivesTheProcess: a process that is started anew after each step
// counts every request as one that goes on does, and compacts when that one does;
// without documents it does not. Most steps write nothing. A12
func TestUsageOutlivesTheProcess(t *testing.T) {
	const steps, factor = 50, 1.4
	run := func(anew, keeps bool) (sizes []int, compactions, written int) {
		kept, told := &store.Memory{}, &recorder{}
		config := palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept}, Events: told}
		if keeps {
			config.Store.Documents = writes{kept, &written}
		}
		counter := o200k(t)
		var th *palimpsest.Session
		step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget * 5 / 4, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
		for n := range steps {
			if th == nil || anew {
				c, err := palimpsest.New(config)
				if err != nil {
					t.Fatal(err)
				}
				th = c.Session("t")
			}
			out, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, out.Tokens)
			call, result := work(n)
			if err := th.FinishStep(t.Context(), out, wire.Usage{Input: int(float64(counter.Prompt(out.Prompt)) * factor), Known: true}, call); err != nil {
				t.Fatal(err)
			}
			step.Messages = []thread.Message{result}
		}
		return sizes, told.count(event.Completed), written
	}
	want, compactions, written := run(false, true)
	if compactions == 0 || written == 0 || written > steps/2 {
		t.Errorf("%d compactions, %d writes in %d steps", compactions, written, steps)
	}
	if got, n, _ := run(true, true); n != compactions || !slices.Equal(got, want) {
		t.Errorf("started anew: %d compactions, want %d, and sizes\n%v, want\n%v", n, compactions, got, want)
	}
	if got, _, _ := run(true, false); slices.Equal(got, want) {
		t.Error("without documents it counts as with them: what is this test for?")
	}
}

// TestForget: a thread that was deleted and begun anew under its id is another
// one: no figure, no pointer and no plan of the first is left.
func TestForget(t *testing.T) {
	kept := &store.Memory{}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	life := func() (sizes []int, tools int) {
		step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
		for n := range 40 {
			out, err := c.Session("t").PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				tools = len(out.Tools)
			}
			sizes = append(sizes, out.Tokens)
			call, result := work(n)
			if err := c.Session("t").FinishStep(t.Context(), out, wire.Usage{Input: sizes[n] * 3 / 2, Known: true}, call); err != nil {
				t.Fatal(err)
			}
			step.Messages = []thread.Message{result}
		}
		return sizes, tools
	}
	want, _ := life()
	if err := c.Session("t").Delete(t.Context(), func(ctx context.Context) error { return kept.Delete(ctx, "t") }); err != nil {
		t.Fatal(err)
	}
	if got, tools := life(); tools != 0 || !slices.Equal(got, want) {
		t.Errorf("the second life has %d tools at its beginning, and the sizes\n%v, want\n%v", tools, got, want)
	}
	// Another process may have deleted it, and nobody told this one.
	if err := kept.Delete(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if got, tools := life(); tools != 0 || !slices.Equal(got, want) {
		t.Errorf("deleted elsewhere, the next life has %d tools at its beginning, and the sizes\n%v, want\n%v", tools, got, want)
	}
}

// endpoint is a provider's own count: factor times what ours says.
type endpoint struct {
	factor float64
	count  func(*prompt.Prompt) int
	fails  bool
	asked  int
}

func (e *endpoint) CountTokens(_ context.Context, p *prompt.Prompt) (int, error) {
	e.asked++
	if e.fails {
		return 0, &llm.APIError{Kind: llm.ErrConnection}
	}
	return int(float64(e.count(p)) * e.factor), nil
}

// TestMeasured: where the counter estimates, the provider's count of a large
// request decides whether it fits; it is asked once under each plan, not about
// small requests, not by an exact counter, and left alone when it fails. A13
func TestMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		counter string
		fails   bool
		factor  float64
	}{
		"it counts more": {"claude", false, 1.6}, "it counts the same": {"claude", false, 1}, "it cannot be reached": {"claude", true, 1.6}, "an exact counter": {"o200k", false, 1.6},
	} {
		t.Run(name, func(t *testing.T) {
			counter, err := token.New(test.counter, nil)
			if err != nil {
				t.Fatal(err)
			}
			e, told := &endpoint{factor: test.factor, count: counter.Prompt, fails: test.fails}, &recorder{}
			now := time.Unix(1_700_000_000, 0)
			c, err := palimpsest.New(palimpsest.Config{Counter: counter, Measure: e, Events: told, Now: func() time.Time { return now }})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
			worst, early := 0.0, 0
			for n := range 30 {
				now = now.Add(time.Second)
				out, err := th.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				size := counter.Prompt(out.Prompt)
				worst = max(worst, float64(size)*test.factor)
				if size < loopBudget/3 && len(out.Messages) == 1+2*n {
					early = e.asked
				}
				call, result := work(n)
				if err := th.FinishStep(t.Context(), nil, wire.Usage{}, call); err != nil {
					t.Fatal(err)
				}
				step.Messages = []thread.Message{result}
			}
			plans, err := th.Plans(t.Context())
			if err != nil || len(plans) == 0 {
				t.Fatalf("%d plans, %v", len(plans), err)
			}
			if early > 0 {
				t.Errorf("asked %d times about small requests", early)
			}
			switch {
			case test.counter == "o200k":
				if e.asked != 0 {
					t.Errorf("an exact counter asked %d times", e.asked)
				}
			case test.fails:
				if e.asked != 1 {
					t.Errorf("asked %d times in half a minute although it fails", e.asked)
				}
			default:
				if e.asked == 0 || e.asked > len(plans)+1 {
					t.Errorf("asked %d times under %d plans", e.asked, len(plans))
				}
				if worst > loopBudget {
					t.Errorf("the provider saw %.0f tokens, the budget is %d", worst, loopBudget)
				}
			}
		})
	}
}
