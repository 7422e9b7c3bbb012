package palimpsest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/artifact/mem"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// binding is a provider that binds thinking to the prompt before it: by signature, what the
// prompt was when the thinking was made.
type binding map[string]string

// check fails where a prompt has thinking that was made behind another one.
func (b binding) check(t *testing.T, p *prompt.Prompt, step int) {
	t.Helper()
	for i, m := range p.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(thread.Reasoning); ok && b[r.Signature] != textBefore(p, i) {
				t.Errorf("step %d: %s is sent behind another prompt than it was made for", step, r.Signature)
			}
		}
	}
}

// think signs thinking for the prompt.
func (b binding) think(p *prompt.Prompt, n int) thread.Part {
	part := thought(n)
	b[fmt.Sprint("sig", n)] = textBefore(p, len(p.Messages))
	return part
}

// textBefore is what a prompt says before message i.
func textBefore(p *prompt.Prompt, i int) string {
	var b strings.Builder
	for _, s := range p.System {
		fmt.Fprintf(&b, "system %s\n", s.Text)
	}
	for _, tool := range p.Tools {
		fmt.Fprintf(&b, "tool %s\n", tool.Name)
	}
	for _, m := range p.Messages[:i] {
		fmt.Fprintf(&b, "%s %s\n", m.Role, m.Text())
		for _, part := range m.Parts {
			switch part := part.(type) {
			case thread.Reasoning:
				fmt.Fprintf(&b, "thinking %s\n", part.Signature)
			case thread.ToolCall:
				fmt.Fprintf(&b, "call %s %s\n", part.ID, part.Arguments)
			case thread.ToolResult:
				fmt.Fprintf(&b, "result %s %s\n", part.CallID, part.Text())
			}
		}
	}
	return b.String()
}

// TestRecalledKeepsItsPlace: what is shown for the user's message stands where the model saw
// it first, for the whole turn, so that prompts only grow and the thinking stays. With the
// next message it goes, and the thinking behind it; also where each step is another process's.
func TestRecalledKeepsItsPlace(t *testing.T) {
	for _, processes := range []string{"one", "many"} {
		t.Run(processes, func(t *testing.T) {
			kept := &store.Memory{}
			open := func() *palimpsest.Session {
				c, err := palimpsest.New(palimpsest.Config{Log: kept, Plans: kept, Documents: kept, Policy: policy.Auto{}, Recall: &palimpsest.Recall{Inject: 2000}})
				if err != nil {
					t.Fatal(err)
				}
				return c.Session("t")
			}
			s, provider := open(), binding{}
			step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 6000}
			for n := range 30 {
				step.Messages = append(step.Messages, plain(thread.User, fmt.Sprint("What of zebra", n, "?", strings.Repeat(" filler words here", 60))), plain(thread.Assistant, fmt.Sprintf("The port of zebra%d is 80%02d.", n, n)))
			}
			before := ""
			for n, want := range []string{"", "sig0", "sig0 sig1", "", "sig3", "sig3 sig4"} {
				question := n%3 == 0
				if question {
					step.Messages = append(step.Messages, plain(thread.User, fmt.Sprintf("Which port had zebra%d?", 7+n)))
				}
				if processes == "many" {
					s = open()
				}
				p, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				provider.check(t, p.Prompt, n)
				text := textBefore(p.Prompt, len(p.Messages))
				if !strings.Contains(text, "[Recalled Content") {
					t.Errorf("step %d: nothing is recalled: what is this test for?", n)
				}
				if got := signatures(p.Prompt); got != want {
					t.Errorf("step %d: thinking %q, want %q", n, got, want)
				}
				if !question && !strings.HasPrefix(text, before) {
					t.Errorf("step %d: the prompt did not only grow", n)
				}
				if first := p.CachePoints[0].After; !question && first != len(p.Messages)-1 {
					t.Errorf("step %d: the most important cache point is after message %d of %d", n, first, len(p.Messages))
				}
				before = text
				turn := lookedUp(n, "short")
				if n%3 == 2 {
					turn = []thread.Message{{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "That one."}}}}
				}
				turn[0].Parts = append([]thread.Part{provider.think(p.Prompt, n)}, turn[0].Parts[min(1, len(turn[0].Parts)-1):]...)
				if err := s.FinishStep(t.Context(), p, llm.Usage{}, turn[0]); err != nil {
					t.Fatal(err)
				}
				step.Messages = turn[1:]
			}
		})
	}
}

// TestBroughtBackStripsBoundThinking: over a long loop in which the agent names what was
// externalized, asks, and is asked, no prompt has thinking that was made for another.
func TestBroughtBackStripsBoundThinking(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{
		Policy: policy.Ladder{MaxInputTokens: loopBudget}, Artifacts: artifact.NewStore(mem.New(), nil), Recall: &palimpsest.Recall{Inject: 800},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, provider := c.Session("t"), binding{}
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
	back, sent := 0, 0
	for n := range 80 {
		p, err := s.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		provider.check(t, p.Prompt, n)
		if strings.Contains(textBefore(p.Prompt, len(p.Messages)), "[Rehydrated Content") {
			back++
		}
		sent += len(strings.Fields(signatures(p.Prompt)))
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call, result := work(n)
		if len(plans) > 0 && n%7 == 0 && len(plans[len(plans)-1].Externalizations) > 0 {
			call.Parts = append([]thread.Part{thread.Text{Text: "I look at " + plans[len(plans)-1].Externalizations[0].ArtifactID + " again."}}, call.Parts...)
		}
		step.Messages = []thread.Message{result}
		if n%10 == 9 {
			call, step.Messages = plain(thread.Assistant, "Done so far."), []thread.Message{plain(thread.User, fmt.Sprintf("What was in queue/file%d.go, in handle%d?", n-8, n-8))}
		}
		call.Parts = append([]thread.Part{provider.think(p.Prompt, n)}, call.Parts...)
		if err := s.FinishStep(t.Context(), p, llm.Usage{}, call); err != nil {
			t.Fatal(err)
		}
	}
	if back == 0 || sent == 0 {
		t.Errorf("%d prompts with content brought back, %d times thinking: what is this test for?", back, sent)
	}
}
