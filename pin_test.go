package palimpsest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestPin: what the user has pinned is shown, in this plan and after the next
// compaction, until it is given free.
func TestPin(t *testing.T) {
	read, err := transcript.Open("testdata/sessions/fix-retry.claude-code.jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	messages := read.Transcripts[0].Thread.Messages()
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, step := c.Session("pins"), palimpsest.Step{Budget: 20_000}
	if _, err := s.Append(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	p, err := s.Compact(t.Context(), step, "")
	if err != nil {
		t.Fatal(err)
	}
	hidden := p.Summarizations[0].Span.MessageIDs[10]
	action := func() plan.Action {
		plans, err := s.Plans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return plans[len(plans)-1].Actions()[hidden].Action
	}
	if action() == plan.Include {
		t.Fatal("the message is shown already")
	}
	if err := s.Pin(t.Context(), hidden, true); err != nil {
		t.Fatal(err)
	}
	if got := action(); got != plan.Include {
		t.Errorf("pinned, and the plan has it under %s", got)
	}
	if p, err = s.Compact(t.Context(), step, ""); err != nil {
		t.Fatal(err)
	}
	if got := action(); got != plan.Include {
		t.Errorf("after a compaction the pinned message is under %s", got)
	}
	if len(p.Pinned) != 1 || p.Pinned[0] != hidden || p.CompactedTokens > 20_000 {
		t.Errorf("pinned: %v, %d tokens", p.Pinned, p.CompactedTokens)
	}
	if err := s.Pin(t.Context(), hidden, false); err != nil {
		t.Fatal(err)
	}
	if err := s.Undo(t.Context(), 1); err != nil { // what was pinned later goes with the plan
		t.Fatal(err)
	}
	if got := action(); got == plan.Include {
		t.Error("given free and undone, the message is shown")
	}
	if err := s.Pin(t.Context(), "nothing", true); !errors.Is(err, thread.ErrUnknownID) {
		t.Errorf("a message that is not there: %v", err)
	}
}

// TestPinsHold: whatever the policy, and with a form of its own too, what is pinned stays,
// and the rest is compacted as before.
func TestPinsHold(t *testing.T) {
	cutLast, err := policyfile.Read("cut.yaml", []byte("base: last-turns:1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tested := range map[string]policy.Policy{
		"loop":        policy.Loop{ContextLimit: 6_000, MaxOutput: 1_000},
		"session":     policy.Session{ContextLimit: 6_000, SystemReserve: 1, OutputReserve: 1_000, SafetyBuffer: 1, Keep: 3},
		"timeline":    policy.Timeline{},
		"workstream":  policy.Workstream{OutputReserve: 1_000, SafetyMargin: 1},
		"last turn":   cutLast.Policy(nil),
		"by itself":   policy.Auto{},
		"as a ladder": policy.Ladder{MaxInputTokens: 5_000},
	} {
		t.Run(name, func(t *testing.T) {
			told := &recorder{}
			c, err := palimpsest.New(palimpsest.Config{Policy: tested, Events: told})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("pins")
			step := palimpsest.Step{Window: 6_000, Output: 1_000}
			rule := thread.Message{ID: "rule", Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Never deploy on Friday."}}}
			if _, err := s.Append(t.Context(), plain(thread.User, "Tidy the queue."), plain(thread.Assistant, "I do."), rule, plain(thread.Assistant, "Yes.")); err != nil {
				t.Fatal(err)
			}
			if err := s.Pin(t.Context(), rule.ID, true); err != nil {
				t.Fatal(err)
			}
			for n := range 12 {
				step.Messages = []thread.Message{plain(thread.User, fmt.Sprint("Part ", n, strings.Repeat(" of the queue", 150)))}
				p, err := s.PrepareStep(t.Context(), step)
				if err != nil {
					t.Fatal(err)
				}
				if p.Compacted != nil && p.Compacted.Actions()[rule.ID].Action != plan.Include || !strings.Contains(promptText(p.Prompt), "Never deploy on Friday.") {
					t.Fatalf("step %d: the pinned message is hidden", n)
				}
				if err := s.FinishStep(t.Context(), p, llm.Usage{}, plain(thread.Assistant, "Done"+strings.Repeat(" and done", 150))); err != nil {
					t.Fatal(err)
				}
			}
			if done, failed := told.count(event.Completed), told.count(event.Failed); done == 0 || failed > 0 {
				t.Errorf("%d compactions, %d failures", done, failed)
			}
		})
	}
}

// TestLateResult: a plan that hides a call whose result came late is no longer in use; what
// is pinned and remembered stays, and can be changed.
func TestLateResult(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Auto{}})
	if err != nil {
		t.Fatal(err)
	}
	s, ctx := c.Session("late"), t.Context()
	call, result := work(0)
	messages := []thread.Message{plain(thread.User, "Tidy the queue."), call}
	for n := range 8 {
		messages = append(messages, plain(thread.User, fmt.Sprint("Part ", n, strings.Repeat(" of the queue", 200))), plain(thread.Assistant, "Done"+strings.Repeat(" and done", 200)))
	}
	if _, err := s.Append(ctx, messages...); err != nil {
		t.Fatal(err)
	}
	step := palimpsest.Step{Budget: 3_000}
	p, err := s.Compact(ctx, step, "")
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.Append(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p.Actions()[log.Log.At(1).ID].Action == plan.Include {
		t.Fatal("the call is not hidden: the test is set up wrong")
	}
	last := log.Log.At(log.Log.Len() - 1).ID
	if err := errors.Join(s.Remember(ctx, "Never deploy on Friday."), s.Pin(ctx, last, true)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, result); err != nil {
		t.Fatal(err)
	}
	if err := s.Remember(ctx, "Ask before pushing."); err != nil {
		t.Fatalf("under a plan that does not hold: %v", err)
	}
	for range 2 {
		step.Messages = []thread.Message{plain(thread.User, "Go on.")}
		out, err := s.PrepareStep(ctx, step)
		if err != nil {
			t.Fatal(err)
		}
		text := promptText(out.Prompt)
		if !strings.Contains(text, "Never deploy on Friday.") || !strings.Contains(text, "Ask before pushing.") {
			t.Errorf("the memory block is gone:\n%s", text)
		}
	}
	plans, err := s.Plans(ctx)
	if err != nil || !slices.Contains(plans[len(plans)-1].Pinned, last) {
		t.Errorf("the pin is gone: %v", err)
	}
}

// promptText is the text of system and messages.
func promptText(p *prompt.Prompt) string {
	var b strings.Builder
	for _, system := range p.System {
		b.WriteString(system.Text + "\n")
	}
	for _, m := range p.Messages {
		b.WriteString(m.Text() + "\n")
	}
	return b.String()
}
