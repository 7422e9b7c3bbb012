package palimpsest_test

import (
	"context"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// looking is a policy that keeps what it was asked about and does nothing.
type looking struct{ last *policy.State }

func (*looking) Name() string { return "looking" }

func (l *looking) Due(s *policy.State) (bool, string) {
	l.last = s
	return false, ""
}

func (*looking) Plan(context.Context, *policy.State) (*policy.Fitted, error) {
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
	th := c.Thread("t")
	look := func(model string) *policy.State {
		t.Helper()
		step := palimpsest.Step{Base: &prompt.Prompt{Model: model}, Messages: []thread.Message{plain(thread.User, "Go on.")}}
		if _, err := th.PrepareStep(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		s := l.last
		if err := th.FinishStep(t.Context(), llm.Usage{}, plain(thread.Assistant, "Done.")); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := look("claude-sonnet-4-5"); s.Rates.Write != 1.25 || s.Rates.Read > 0.11 || s.Rates.Read < 0.09 || s.Cold || !s.Reachable {
		t.Errorf("at first: %+v, cold %v, reachable %v", s.Rates, s.Cold, s.Reachable)
	}
	now = now.Add(4 * time.Minute)
	if look("claude-sonnet-4-5").Cold {
		t.Error("cold after four minutes")
	}
	now = now.Add(6 * time.Minute)
	if !look("claude-sonnet-4-5").Cold {
		t.Error("warm after six minutes")
	}
	if s := look("nobody-knows-it"); s.Rates.Read != 0 || s.Cold {
		t.Errorf("an unknown model: %+v, cold %v", s.Rates, s.Cold)
	}
}
