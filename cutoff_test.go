package palimpsest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// allPolicies are the policies in a window of about 12,000 tokens.
func allPolicies() []policy.Policy {
	return []policy.Policy{
		policy.Auto{}, policy.Notes{}, policy.Ladder{MaxInputTokens: loopBudget},
		policy.Session{ContextLimit: 25_000}, policy.Timeline{},
		policy.Workstream{ContextSize: loopBudget, OutputReserve: 1, SafetyMargin: 1},
		policy.Loop{ContextLimit: loopBudget + 1000, MaxOutput: 1000},
	}
}

// cutAnswer is an answer that ended inside its second call.
func cutAnswer() thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.Text{Text: "I write both files."},
		thread.ToolCall{ID: "call_a", Name: "Write", Arguments: `{"file_path":"a.go"}`},
		thread.ToolCall{ID: "call_b", Name: "Write", Arguments: `{"file_path":"b.go","content":"package`},
	}}
}

// TestCutOff: an answer that was cut off for length leaves only whole calls behind; where
// a compaction is due the loop goes on with a smaller prompt that the provider
// takes, else it ends for a reason of its own. E2
func TestCutOff(t *testing.T) {
	for _, p := range allPolicies() {
		t.Run(p.Name(), func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			th := c.Session("t")
			step := palimpsest.Step{
				Base:    &prompt.Prompt{Model: "m", MaxOutput: 1000, Tools: []prompt.Tool{{Name: "Read", Schema: `{"type":"object"}`}, {Name: "Write", Schema: `{"type":"object"}`}}},
				Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")},
			}
			p, err := th.PrepareStep(ctx, step)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := th.CutOff(ctx, p, wire.Usage{}, cutAnswer()); !errors.Is(err, policy.ErrMaxTokens) {
				t.Fatalf("a short conversation was cut off: %v, want ErrMaxTokens", err)
			}
			// Work until the policy would compact at the next step.
			var out *palimpsest.Prepared
			for n := 0; ; n++ {
				call, result := work(n)
				if _, err := th.Append(ctx, call, result); err != nil {
					t.Fatal(err)
				}
				if out, err = th.CutOff(ctx, p, wire.Usage{}, cutAnswer()); err == nil {
					break
				}
				if !errors.Is(err, policy.ErrMaxTokens) || n > 60 {
					t.Fatalf("after %d steps: %v", n, err)
				}
			}
			plans, err := th.Plans(ctx)
			if err != nil || len(plans) != 1 {
				t.Fatalf("%d plans, %v", len(plans), err)
			}
			last := out.Messages[len(out.Messages)-1]
			if last.Role != thread.User || last.StartsTurn() || !strings.Contains(last.Text(), "cut off") {
				t.Errorf("the prompt ends with %+v", last)
			}
			body, err := anthropic.Codec{}.Encode(out.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range (anthropic.Codec{}).Validate(body) {
				t.Errorf("the provider would refuse: %v", problem)
			}
			if strings.Contains(string(body), "call_b") || !strings.Contains(string(body), "Not run: the answer was cut off") {
				t.Error("the call that was cut off is in the prompt, or the whole one before it is not")
			}
		})
	}
}
