package daemon_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// refactored is the conversation of the picture of seed E, as far as it is written out.
func refactored() []neutral.Message {
	text := func(text string, m neutral.Message) neutral.Message {
		m.Parts = append([]neutral.Part{{Type: neutral.TextPart, Text: text}}, m.Parts...)
		return m
	}
	return []neutral.Message{
		said("user", "Help me refactor"), text("I'll look at the code", calling("c1", "Read", "{}")), resulting("c1", "Read", "file contents..."),
		said("user", "Now fix the bug"), text("Let me check", calling("c4", "Read", "{}")), resulting("c4", "Read", "..."),
		said("user", "Also add tests"), text("Sure", calling("c7", "Write", "{}")), resulting("c7", "Write", "..."),
		said("user", "Run the tests"), calling("c10", "Bash", "{}"), resulting("c10", "Bash", "PASS"),
		said("user", "Now deploy"), said("assistant", "I'll push to git"),
	}
}

// TestLoopOverHTTP is the picture of seed E, through the daemon: the nine messages before
// the split become a summary and a word of assent. However the model fails, the daemon
// answers with a list that a provider takes, and a note in place of the summary says how
// many messages it stands for. The hooks are told in their order. E4, E5, E6, E7, E8
func TestLoopOverHTTP(t *testing.T) {
	const good = "Earlier, I refactored code, fixed a bug, and added tests..."
	const note = "[Context truncated. Earlier conversation contained 9 messages about: Help me refactor"
	for name, turn := range map[string]llmtest.Turn{
		good: llmtest.Say(good), "timeout": llmtest.Fail(llm.ErrTimeout), "error": llmtest.Fail(llm.ErrServer), "too long": llmtest.Fail(llm.ErrOverflow), "no key": llmtest.Fail(llm.ErrAuth),
		"empty": llmtest.Say(""), "blank": llmtest.Say(" \n"), "refused": {Reply: llm.Reply{Stop: llm.StopRefusal}}, "cut off": {Reply: llm.Reply{Text: "ear", Stop: llm.StopLength}},
		"nobody": llmtest.Fail(fmt.Errorf("no route to host")),
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.Script(turn, turn, turn, turn, turn)
			k := talking(t, palimpsest.Config{Policy: policy.Loop{Model: model}}, api.Step{API: wire.Chat, Window: 200_000, Output: 1_000})
			k.add(refactored()...)
			if _, err := k.Compact(t.Context(), "t", api.Any, api.Compact{}); err != nil {
				t.Fatal(err)
			}
			p := k.ask()
			for _, problem := range (openai.Chat{}).Validate(p.Body) {
				if !problem.Advice {
					t.Errorf("the provider would refuse: %v", problem)
				}
			}
			var sent struct {
				Messages []struct {
					Role    string
					Content any
				}
			}
			if err := json.Unmarshal(p.Body, &sent); err != nil {
				t.Fatal(err)
			}
			var shown []string
			for _, m := range sent.Messages[1:] { // behind the system prompt
				shown = append(shown, m.Role+": "+fmt.Sprint(m.Content))
			}
			begins := "user: [COMPACT SUMMARY]\n" + good
			if name != good {
				begins = "user: [COMPACT SUMMARY]\n" + note
			}
			rest := strings.Join(shown[1:], "\n")
			if want := "assistant: Understood.\nuser: Run the tests\nassistant: <nil>\ntool: PASS\nuser: Now deploy\nassistant: I'll push to git"; !strings.HasPrefix(shown[0], begins) || rest != want || !strings.Contains(shown[0], "Help me refactor") {
				t.Errorf("%s\n%s", shown[0], rest)
			}
			var told []string
			for _, e := range k.told.of(event.PreCompact, event.SessionStart, event.Boundary) {
				told = append(told, strings.TrimSpace(fmt.Sprint(e.Type, " ", e.Details["source"])))
			}
			if want := "pre_compact <nil>, session_start compact, compact_boundary <nil>"; strings.Join(told, ", ") != want {
				t.Errorf("told: %s, want %s", strings.Join(told, ", "), want)
			}
		})
	}
}

// TestLoopBudgetOverHTTP: the system prompt and the answer are taken off the window before
// the share is: 0.80 × (limit − system/4 − output); where that leaves nothing, what is
// available is negative, and any conversation is due. At the mark nothing is. E1, E3
func TestLoopBudgetOverHTTP(t *testing.T) {
	for _, tt := range []struct{ system, mark int }{{8_000, 5_600}, {20_000, 3_200}, {40_000, 0}} {
		base := &neutral.Prompt{Model: "m", System: []neutral.System{{Text: strings.Repeat("s", tt.system)}}}
		k := talking(t, palimpsest.Config{Policy: policy.Loop{ContextLimit: 10_000, MaxOutput: 1_000}}, api.Step{Base: base, Window: 200_000, Output: 1_000})
		total := 0
		word := func(role, text string) neutral.Message {
			total += len(text)/4 + 4
			return said(role, text)
		}
		if tt.mark == 0 {
			k.add(word("user", "Help me."), word("assistant", "ok"))
			if p := k.ask(word("user", "on")); p.PlanVersion == 0 {
				t.Errorf("system of %d: %d tokens of messages are not due though nothing is left for them", tt.system, total)
			}
			continue
		}
		for total < tt.mark-600 {
			k.add(word("user", "Help me. "+strings.Repeat("x", 1_600)), word("assistant", "ok"))
		}
		if p := k.ask(word("user", strings.Repeat("x", 4*(tt.mark-total-4)))); total != tt.mark || p.PlanVersion != 0 {
			t.Errorf("system of %d: %d tokens of messages, plan %d; want none at %d", tt.system, total, p.PlanVersion, tt.mark)
		}
		if p := k.ask(word("user", "Go on.")); p.PlanVersion != 1 {
			t.Errorf("system of %d: %d tokens of messages are not due, the mark is %d", tt.system, total, tt.mark)
		}
	}
}
