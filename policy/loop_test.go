package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestLoopFigure is the seed's picture: what it lists of its messages is split
// before the ninth, and comes out as the seven below it. E4, E5, E7
func TestLoopFigure(t *testing.T) {
	log := []thread.Message{
		say(thread.User, "Help me refactor"),
		call(1, "I'll look at the code", "Read", `{}`), toolResult(1, "Read", "file contents..."),
		say(thread.User, "Now fix the bug"),
		call(4, "Let me check", "Read", `{}`), toolResult(4, "Read", "..."),
		say(thread.User, "Also add tests"),
		call(7, "Sure", "Write", `{}`), toolResult(7, "Write", "..."),
		say(thread.User, "Run the tests"),
		call(10, "", "Bash", `{}`), toolResult(10, "Bash", "PASS"),
		say(thread.User, "Now deploy"),
		say(thread.Assistant, "I'll push to git"),
	}
	model := llmtest.Script(llmtest.Say("Earlier, I refactored code, fixed a bug, and added tests..."))
	told := &trace{}
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Loop{Model: model}, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	if _, err := th.Compact(t.Context(), palimpsest.Step{Messages: log}, ""); err != nil {
		t.Fatal(err)
	}
	out, err := th.PrepareStep(t.Context(), palimpsest.Step{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"user: [COMPACT SUMMARY]", "assistant: Understood.",
		"user: Run the tests", "assistant: +Bash", "tool: PASS", "user: Now deploy", "assistant: I'll push to git",
	}
	if diff := cmp.Diff(want, shape(out.Messages)); diff != "" {
		t.Errorf("after compaction (-want +got):\n%s", diff)
	}
	const user = "\n\nThe user's words\n- Help me refactor\n- Now fix the bug\n- Also add tests" // what no model is left to keep. F1
	if got := out.Messages[0].Text(); got != "[COMPACT SUMMARY]\nEarlier, I refactored code, fixed a bug, and added tests..."+user {
		t.Errorf("summary: %q", got)
	}
	kept := out.Messages[2].ID
	for _, e := range told.events {
		if e.Type == event.Boundary && (e.Details["trigger"] != "manual" || e.Details["first_kept"] != kept) {
			t.Errorf("boundary: %v, want the message %s", e.Details, kept)
		}
	}
	asked := model.Asked()[0].Prompt.Messages[0].Text()
	if !strings.Contains(asked, "[8] TOOL:") || strings.Contains(asked, "Run the tests") {
		t.Errorf("the summarizer reads other messages than the first nine:\n%s", asked)
	}
}

// loopLimit and loopOutput leave 2,000 tokens, so that 1,600 is the mark.
const loopLimit, loopOutput = 3_000, 1_000

// TestLoopRounds: over several rounds each summary is given the one before, not
// as content. The golden file holds what the summarizer is asked, the events,
// and the prompts. E1, E4, E7
func TestLoopRounds(t *testing.T) {
	var turns []llmtest.Turn
	for n := 1; n <= 6; n++ {
		turns = append(turns, llmtest.Say(fmt.Sprintf("I write the parts of the app, src/part%d.ts among them.\n", 5*n-4)))
	}
	turns[2] = llmtest.Fail(llm.ErrOverloaded)
	r := &trace{model: llmtest.Script(turns...)}
	th, _ := run(t, policy.Loop{Model: r.model, ContextLimit: loopLimit, MaxOutput: loopOutput, Timeout: time.Minute}, r, 24, palimpsest.Step{})
	golden.Equal(t, "testdata/loop.golden", r.String())
	texts := plans(t, th, 4)
	for n := 1; n < len(texts); n++ {
		earlier := strings.TrimPrefix(texts[n-1], "[COMPACT SUMMARY]\n")
		asked := r.model.Asked()[n].Prompt.Messages[0].Text()
		if strings.Count(asked, earlier) != 1 || strings.Contains(asked, "Understood.") || strings.Contains(asked, "COMPACT SUMMARY") {
			t.Errorf("round %d is asked:\n%s", n+1, asked)
		}
	}
}

// TestLoopWithoutModel: code writes the summary, and keeps what it knew.
func TestLoopWithoutModel(t *testing.T) {
	r := &trace{model: llmtest.Script()}
	th, _ := run(t, policy.Loop{ContextLimit: loopLimit, MaxOutput: loopOutput}, r, 24, palimpsest.Step{})
	texts := plans(t, th, 3)
	for _, want := range []string{"[COMPACT SUMMARY]\n[Summary v1.0]\n", "Build a flashcard app.", "src/part0.ts", "src/part6.ts"} {
		if !strings.Contains(texts[len(texts)-1], want) {
			t.Errorf("the last summary has no %q:\n%s", want, texts[len(texts)-1])
		}
	}
}

// TestLoopFailures: whatever happens to the summarizer, the newest 40 % stay
// behind a note, and an event says what was done and why. E4, E6, E8
func TestLoopFailures(t *testing.T) {
	for name, model := range failures() {
		t.Run(name, func(t *testing.T) {
			told := &trace{}
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Loop{Model: model, ContextLimit: loopLimit, MaxOutput: loopOutput, Timeout: time.Millisecond}, Events: told})
			if err != nil {
				t.Fatal(err)
			}
			step := due()
			th := c.Session("t")
			out, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			n := len(step.Messages)
			kept := len(out.Messages) - 2
			if kept < n*4/10-2 || kept > n*4/10+2 {
				t.Errorf("%d of %d messages stay", kept, n)
			}
			want := fmt.Sprintf("[COMPACT SUMMARY]\n[Context truncated. Earlier conversation contained %d messages about: Build a flashcard app.; Good. Now add feature 1.]", n-kept) +
				"\n\nThe user's words\n- Build a flashcard app.\n  Never touch legacy/." // F1: beside the seed's note
			if got := out.Messages[0].Text(); got != want {
				t.Errorf("note: %q\nwant: %q", got, want)
			}
			if diff := cmp.Diff(shape(step.Messages[n-kept:]), shape(out.Messages[2:])); diff != "" {
				t.Errorf("what stays is not what it was:\n%s", diff)
			}
			var types []event.Type
			for _, e := range told.events {
				types = append(types, e.Type)
				if e.Type == event.Completed && (e.Err == "" || e.Details["fallback"] != "truncation_note") {
					t.Errorf("%+v", e)
				}
			}
			if diff := cmp.Diff([]event.Type{event.CheckStarted, event.PreCompact, event.Asked, event.ProposalGenerated, event.Summarized, event.PlanCommitted, event.Completed, event.SessionStart, event.Boundary}, types); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCanceled: a caller who gives up gets no note in place of a summary.
func TestCanceled(t *testing.T) {
	for _, p := range []policy.Policy{policy.Loop{Model: slow{}, Timeout: time.Hour, ContextLimit: loopLimit, MaxOutput: loopOutput}, policy.Session{Model: slow{}, Timeout: time.Hour, ContextLimit: small}} {
		synctest.Test(t, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			if _, err := th.Append(t.Context(), due().Messages...); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			if _, err := th.PrepareStep(ctx, palimpsest.Step{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Minute {
				t.Errorf("%s: %v after %v", p.Name(), err, time.Since(begun))
			}
			if got, err := th.Plans(t.Context()); err != nil || len(got) != 0 {
				t.Errorf("%s: %d plans, %v", p.Name(), len(got), err)
			}
		})
	}
}
