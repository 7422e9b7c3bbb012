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

// TestRequestsFillTheBudget: a size that somebody asks for holds the user's first and latest request, or cannot be met,
// which names the one that was too much. F1
func TestRequestsFillTheBudget(t *testing.T) {
	long := strings.Repeat("Count the crates by colour and size, and write them down. ", 8)
	named := map[string]int{}
	for _, ends := range [][2]string{{long + "Never touch bay 9.", "Go on with gate 7."}, {"Never touch bay 9.", long + "Go on with gate 7."}} {
		list := []thread.Message{speak(thread.User, ends[0])}
		for n := range 6 {
			id := fmt.Sprintf("c%d", n)
			list = append(list, callTool(id, "Read", `{"file_path":"a"}`, ""), answerTool(id, "Read", strings.Repeat(fmt.Sprintf("row %d of the bay\n", n), 60)),
				speak(thread.Assistant, "This part is done."), speak(thread.User, fmt.Sprintf("Now %d.", n)))
		}
		list[len(list)-1] = speak(thread.User, ends[1])
		log, err := thread.New("t").Append(list...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []policy.Policy{policy.Auto{}, policy.Notes{}, policy.Ladder{}} {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			for budget := 20; budget < 1200; budget += 40 {
				out, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget})
				var full *policy.BudgetError
				if errors.As(err, &full) {
					for _, part := range full.Parts {
						named[part.Name]++
					}
					if full.Need <= budget {
						t.Errorf("%s at %d: %d are needed", p.Name(), budget, full.Need)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				all := ""
				for i := range out.Prompt.Messages {
					all += out.Prompt.Messages[i].Text() + "\n"
				}
				if !strings.Contains(all, "Never touch bay 9.") || !strings.Contains(all, "Go on with gate 7.") {
					t.Errorf("%s at %d: a request is gone from\n%s", p.Name(), budget, all)
				}
			}
		}
	}
	if named["the user's first request"] == 0 || named["the user's latest request"] == 0 {
		t.Errorf("named: %v", named)
	}
}
