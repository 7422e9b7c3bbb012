package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestTaskStands: where tools and instructions leave hardly any room, the first request stands in every prompt all
// the same, for which more is taken than a compaction aims at. F1
func TestTaskStands(t *testing.T) {
	const task = "Read the bays. Never touch bay 9."
	base := &prompt.Prompt{Model: "m", MaxOutput: 100, System: []prompt.System{{Text: strings.Repeat("You count bays. ", 100)}}}
	compacted := 0
	for limit := 1400; limit <= 2000; limit += 50 {
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: limit, SafetyBuffer: -1, RehydrationReserve: -1}, Recall: &palimpsest.Recall{}})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Session("t")
		ask := func(news ...thread.Message) {
			out, err := s.PrepareStep(t.Context(), palimpsest.Step{Base: base, Messages: news, Profile: render.For(wire.Responses)})
			var full *policy.BudgetError
			if errors.As(err, &full) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			all := ""
			for i := range out.Messages {
				all += out.Messages[i].Text() + "\n"
			}
			if !strings.Contains(all, task) {
				t.Errorf("%d tokens of %d: the task is gone from\n%s", out.Tokens, limit, all)
			}
			if out.PlanVersion > 0 {
				compacted++
			}
		}
		ask(speak(thread.User, task))
		for n := range 6 {
			for k := range 4 {
				id := fmt.Sprintf("c%d_%d", n, k)
				ask(callTool(id, "Read", fmt.Sprintf(`{"file_path":"a%d"}`, k), ""), answerTool(id, "Read", strings.Repeat(fmt.Sprintf("row %d%d of the bay\n", n, k), 30)))
			}
			ask(speak(thread.Assistant, "This part is done."), speak(thread.User, fmt.Sprintf("Now %d.", n)),
				speak(thread.System, "Answers are short."), speak(thread.System, fmt.Sprintf("From now on bays are counted in the unit %d, and each is told in a line of its own.", n)))
			ask(speak(thread.Assistant, "Noted."), speak(thread.User, fmt.Sprintf("Go on with part %d.", n)))
		}
	}
	if compacted < 100 {
		t.Errorf("%d prompts under a plan", compacted)
	}
}
