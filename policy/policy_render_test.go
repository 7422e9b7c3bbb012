package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRenderAgain: a state that is asked twice answers the same, and anew for
// another plan and another request around the messages.
func TestRenderAgain(t *testing.T) {
	th, err := thread.New("t").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "one"}}},
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "two two"}}},
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "three"}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	span, err := thread.NewSpan(th, th.At(1).ID)
	if err != nil {
		t.Fatal(err)
	}
	hiding := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: "t", ThreadVersion: 3, Drops: []plan.Removal{{Span: span}}}
	s := stateOf(t, th, hiding)
	sizes := func(p *plan.Plan) (int, int) {
		t.Helper()
		first, err := s.Render(p)
		if err != nil {
			t.Fatal(err)
		}
		second, err := s.Render(p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.Prompt, second.Prompt); diff != "" || first.Tokens != second.Tokens || !cmp.Equal(first.Sizes, second.Sizes) {
			t.Errorf("the second answer is another: %d and %d tokens\n%s", first.Tokens, second.Tokens, diff)
		}
		return len(second.Prompt.Messages), second.Tokens
	}
	hidden, few := sizes(hiding)
	whole, all := sizes(nil)
	if hidden != 2 || whole != 3 || few >= all {
		t.Errorf("%d messages of %d tokens under the plan, %d of %d without one", hidden, few, whole, all)
	}
	// What the next plan brings along stands around its prompt, and not around the
	// one that is in force.
	given := *s
	given.SentBase, given.SentFixed = s.Base, s.Fixed
	given.Base, given.Fixed = &prompt.Prompt{System: []prompt.System{{Text: "Be brief."}}}, s.Fixed+7
	next, err := policy.Situate(given)
	if err != nil {
		t.Fatal(err)
	}
	now, err := next.Render(hiding)
	if err != nil || len(now.Prompt.System) != 0 || now.Tokens != few || next.PromptTokens != few {
		t.Errorf("in force: %v, %+v", err, now)
	}
	after, err := next.Render(nil)
	if err != nil || len(after.Prompt.System) != 1 || after.Tokens != all+7 {
		t.Errorf("next: %v, %+v", err, after)
	}
}
