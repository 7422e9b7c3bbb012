package palimpsest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// looking is a policy that keeps what it was asked about and does nothing.
type looking struct{ last *policy.Situation }

func (*looking) Name() string { return "looking" }

func (l *looking) Due(s *policy.Situation) (bool, string) {
	l.last = s
	return false, ""
}

func (*looking) Plan(context.Context, *policy.Situation) (*policy.Fitted, error) {
	return nil, policy.ErrNothing
}

// TestPolicyKnowsPrices: of a model in the table the policy knows what tokens
// cost and when its cache has gone cold; of any other it knows neither.
func TestPolicyKnowsPrices(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	l := &looking{}
	c, err := palimpsest.New(palimpsest.Config{Policy: l, Recall: &palimpsest.Recall{}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	look := func(model string) *policy.Situation {
		t.Helper()
		step := palimpsest.Step{Base: &prompt.Prompt{Model: model}, Messages: []thread.Message{plain(thread.User, "Go on.")}}
		if _, err := th.PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		s := l.last
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, plain(thread.Assistant, "Done.")); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look("claude-sonnet-4-5"); s.Rates.Write != 1.25 || s.Rates.Read > 0.11 || s.Rates.Read < 0.09 || s.CacheExpired {
		t.Errorf("at first: %+v, cold %v", s.Rates, s.CacheExpired)
	}
	now = now.Add(4 * time.Minute)
	if look("claude-sonnet-4-5").CacheExpired {
		t.Error("cold after four minutes")
	}
	now = now.Add(6 * time.Minute)
	if !look("claude-sonnet-4-5").CacheExpired {
		t.Error("warm after six minutes")
	}
	if s := look("nobody-knows-it"); s.Rates.Read != 0 || s.CacheExpired {
		t.Errorf("an unknown model: %+v, cold %v", s.Rates, s.CacheExpired)
	}
}

// TestPausesAreLearned: how often the cache expires is taken from the thread's own
// requests, beside what is usual; a model whose cache is not known tells nothing.
func TestPausesAreLearned(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	l := &looking{}
	c, err := palimpsest.New(palimpsest.Config{Policy: l, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	after := func(pause time.Duration, model string) float64 {
		t.Helper()
		now = now.Add(pause)
		step := palimpsest.Step{Base: &prompt.Prompt{Model: model}, Messages: []thread.Message{plain(thread.User, "Go on.")}}
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		if err := th.FinishStep(t.Context(), p, wire.Usage{}, plain(thread.Assistant, "I did.")); err != nil {
			t.Fatal(err)
		}
		return l.last.ExpiryChance
	}
	const model = "claude-sonnet-4-5"
	for n, test := range []struct {
		pause time.Duration
		want  float64
	}{
		{0, 1 / 100.0}, {time.Minute, 1 / 100.0}, {time.Minute, 1 / 101.0}, {6 * time.Minute, 1 / 102.0}, {time.Minute, 2 / 103.0},
	} {
		if got := after(test.pause, model); got != test.want {
			t.Errorf("request %d: %v, want %v", n, got, test.want)
		}
	}
	if got := after(time.Hour, "nobody-knows-it"); got != 0 {
		t.Errorf("an unknown model: %v", got)
	}
	if got := after(time.Minute, model); got != 3/105.0 {
		t.Errorf("after a pause under another model: %v", got)
	}
}

// TestIgnorePrices: who wants none is decided for by size alone.
func TestIgnorePrices(t *testing.T) {
	l := &looking{}
	c, err := palimpsest.New(palimpsest.Config{Policy: l, IgnorePrices: true})
	if err != nil {
		t.Fatal(err)
	}
	step := palimpsest.Step{Base: &prompt.Prompt{Model: "claude-sonnet-4-5"}, Messages: []thread.Message{plain(thread.User, "Go on.")}}
	if _, err := c.Session("t").PrepareStep(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	if l.last.Rates != (token.Rates{}) || l.last.CacheExpired {
		t.Errorf("%+v, cold %v", l.last.Rates, l.last.CacheExpired)
	}
}

// TestExpectation: a compaction tells what it should save, where prices are
// known.
func TestExpectation(t *testing.T) {
	for _, model := range []string{"claude-sonnet-4-5", "nobody-knows-it"} {
		var told []event.Event
		sink := event.Func(func(_ context.Context, e event.Event) {
			if e.Type == event.Completed {
				told = append(told, e)
			}
		})
		c, err := palimpsest.New(palimpsest.Config{Events: sink})
		if err != nil {
			t.Fatal(err)
		}
		messages := []thread.Message{plain(thread.User, "Read it all.")}
		for range 30 {
			messages = append(messages, plain(thread.Assistant, strings.Repeat("a line of many words ", 1000)), plain(thread.User, "Go on."))
		}
		step := palimpsest.Step{Base: &prompt.Prompt{Model: model}, Messages: messages, Window: 100_000}
		if _, err := c.Session("t").PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		if len(told) != 1 {
			t.Fatalf("%s: %d compactions", model, len(told))
		}
		saved, known := told[0].Details["saved_per_step"].(int)
		if want := told[0].TokensFreed / 10; known != (model == "claude-sonnet-4-5") || known && (saved < want-1 || saved > want+1) {
			t.Errorf("%s: %v, freed %d", model, told[0].Details, told[0].TokensFreed)
		}
		if steps, _ := told[0].Details["pays_after_steps"].(int); known && (steps < 1 || steps > 12) {
			t.Errorf("%s: pays after %d steps", model, steps)
		}
	}
}
