package palimpsest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestCleared: what a client has cleared by itself is cleared in what follows while no compaction is in force, and is
// none: it counts as no round. Under a plan of a policy, or after an undo, it changes nothing.
func TestCleared(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Session("c")
	list := []thread.Message{plain(thread.User, "Read the bays.")}
	for n := range 8 {
		id := fmt.Sprintf("c%d", n)
		list = append(list, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: "Read", Arguments: "{}"}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: strings.Repeat(fmt.Sprintf("bay %d is full\n", n), 60)}}}}})
	}
	step := palimpsest.Step{Messages: list, Profile: render.For(wire.Chat), Window: 100_000, Output: 1000}
	all, err := s.PrepareStep(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	cleared := func(at ...int) *palimpsest.Prepared {
		t.Helper()
		step.Messages, step.Cleared = nil, nil
		for _, n := range at {
			step.Cleared = append(step.Cleared, all.Messages[2+2*n].ID)
		}
		out, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	shows := func(p *palimpsest.Prepared) (bays string) {
		for n := range 8 {
			for i := range p.Messages {
				if r, ok := p.Messages[i].Result(); ok && strings.Contains(r.Text(), fmt.Sprintf("bay %d is full", n)) {
					bays += fmt.Sprint(n)
				}
			}
		}
		return bays
	}
	one := cleared(1, 2)
	same := cleared(1, 2)
	more := cleared(1, 2, 3)
	if shows(one) != "034567" || shows(more) != "04567" || one.Tokens >= all.Tokens || more.Tokens >= one.Tokens || same.PlanVersion != one.PlanVersion || more.PlanVersion != one.PlanVersion+1 {
		t.Errorf("shown %s, %s of %d, %d, %d tokens, under the plans %d, %d, %d", shows(one), shows(more), all.Tokens, one.Tokens, more.Tokens, one.PlanVersion, same.PlanVersion, more.PlanVersion)
	}
	step.Budget = 900
	made, err := s.Compact(t.Context(), step, "")
	if err != nil {
		t.Fatal(err)
	}
	if made.Round != 1 {
		t.Errorf("the first compaction is round %d", made.Round)
	}
	step.Budget = 0
	before := cleared()
	if after := cleared(7); after.PlanVersion != before.PlanVersion || shows(after) != shows(before) {
		t.Errorf("under a plan: shown %s, then %s", shows(before), shows(after))
	}
	if err := s.Undo(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if after := cleared(1, 2); shows(after) != "01234567" {
		t.Errorf("after an undo %s are shown", shows(after))
	}
	plans, err := s.Plans(t.Context())
	if err != nil || len(plans) != 4 || plans[0].Clearings[0].Action() != plan.Clear {
		t.Errorf("%d plans, %v", len(plans), err)
	}
}

// TestClearedStaysCleared: a compaction shows nothing again that the client had cleared by itself. G4
func TestClearedStaysCleared(t *testing.T) {
	for _, p := range allPolicies() {
		c, err := palimpsest.New(palimpsest.Config{Policy: p, Recall: &palimpsest.Recall{}})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("c")
		list := []thread.Message{plain(thread.User, "Read the bays.")}
		for n := range 5 {
			call, result := work(n)
			list = append(list, call, result)
		}
		step := palimpsest.Step{Messages: list, Profile: render.For(wire.Chat), Window: loopBudget + 1000, Output: 1000}
		all, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		cleared := all.Messages[len(all.Messages)-3]
		was, ok := cleared.Result()
		for round := 0; ok && round < 3; round++ {
			step.Messages, step.Cleared = nil, []thread.ID{cleared.ID}
			made, err := s.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			for i := range made.Messages {
				if r, ok := made.Messages[i].Result(); ok && r.CallID == was.CallID && r.Text() == was.Text() {
					t.Errorf("%s: after %d compactions what the client has cleared is shown", p.Name(), round)
				}
			}
			call, result := work(100 + round)
			if _, err = s.Append(t.Context(), call, result); err == nil {
				_, err = s.Compact(t.Context(), step, "")
			}
			if err != nil && !errors.Is(err, policy.ErrNothing) {
				t.Fatalf("%s: %v", p.Name(), err)
			}
		}
	}
}
