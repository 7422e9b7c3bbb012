package palimpsest_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestPlansGrow: over 60 steps of an agent that reads files, each policy makes a
// handful of plans, so that most of what a provider has cached is the same at the
// next step, and records of auto and ladder stay from plan to plan. Session by the
// letter of its seed compacts at each step where the newest ten messages alone are
// over its threshold, so it has a larger window here. F7
func TestPlansGrow(t *testing.T) {
	for name, want := range map[string]struct {
		plans int     // at most
		same  float64 // of the bytes of a request, at least
		stay  bool
	}{
		"auto": {12, 0.7, true}, "ladder": {16, 0.65, true}, "session": {16, 0.5, false}, "timeline": {12, 0.4, false}, "workstream": {12, 0.7, false}, "loop": {14, 0.7, false},
	} {
		p := policyNamed(t, name)
		budget := loopBudget
		if name == "session" {
			budget = 2 * loopBudget
		}
		t.Run(name, func(t *testing.T) {
			kept := &store.Memory{}
			c, err := palimpsest.New(palimpsest.Config{Policy: p, Log: kept, Plans: kept, Recall: &palimpsest.Recall{}})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: budget, Messages: []thread.Message{plain(thread.User, "Tidy the queue. Never touch internal/api.")}}
			var last string
			same, all := 0, 0
			for n := range 60 {
				prepared, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				unmarked := *prepared.Prompt
				unmarked.CachePoints = nil // a mark that moves on breaks no cache
				body, err := anthropic.Codec{}.Encode(&unmarked)
				if err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					same += commonPrefix(last, string(body))
					all += len(body)
				}
				last = string(body)
				call, result := work(n)
				if err := s.FinishStep(t.Context(), prepared, llm.Usage{}, call); err != nil {
					t.Fatal(err)
				}
				step.Messages = []thread.Message{result}
			}
			plans, err := s.Plans(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			stay := 0
			for i := 1; i < len(plans); i++ {
				stay += len(plans[i].Refs()) - len(plans[i].Since(plans[i-1]))
			}
			share := float64(same) / float64(all)
			t.Logf("%d plans, %.1f %% of the bytes as a step before, %d records stay", len(plans), 100*share, stay)
			if len(plans) == 0 || len(plans) > want.plans || share < want.same || want.stay && stay == 0 {
				t.Errorf("want %+v", want)
			}
		})
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func policyNamed(t *testing.T, name string) policy.Policy {
	t.Helper()
	for _, p := range allPolicies() {
		if p.Name() == name {
			return p
		}
	}
	t.Fatalf("no policy is called %s", name)
	return nil
}
