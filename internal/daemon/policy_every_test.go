package daemon_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// everyPolicy are auto and the five systems, small.
var everyPolicy = map[string]policy.Policy{
	"auto": policy.Auto{}, "notes": policy.Notes{}, "ladder": policy.Ladder{MaxInputTokens: 9_000, PreserveRecentTurns: 1}, "session": policy.Session{ContextLimit: 16_000, Keep: 4},
	"timeline": policy.Timeline{MaxTokens: 6_000}, "workstream": policy.Workstream{ContextSize: 7_000, Tail: 4}, "loop": policy.Loop{ContextLimit: 8_000, MaxOutput: 1_000},
}

// TestNoRequestIsOverItsLimitOverHTTP: with system prompt, tools, memory block, what is
// brought back and what is injected, no request of auto or a ladder is over what the
// model can read. F8
func TestNoRequestIsOverItsLimitOverHTTP(t *testing.T) {
	tools := []neutral.Tool{{Name: "inspect", Description: strings.Repeat("looks at shelves ", 40), Schema: json.RawMessage(`{"type":"object"}`)}}
	for name, l := range map[string]policy.Policy{"auto": policy.Auto{}, "notes": policy.Notes{}, "ladder": policy.Ladder{MaxInputTokens: 9_000}} {
		k := talking(t, palimpsest.Config{Policy: l, Recall: &palimpsest.Recall{Inject: 700}}, api.Step{Base: &neutral.Prompt{Model: "m", Tools: tools, System: []neutral.System{{Text: strings.Repeat("You look after a shop. ", 60)}}}, Window: 10_000, Output: 1_000})
		back, injected, memory := false, false, false
		mentioned := ""
		news := []neutral.Message{said("user", "Count the boxes.")}
		for n := range 24 {
			p := k.ask(news...)
			if p.Tokens > 9_000 {
				t.Errorf("%s, step %d: %d tokens", name, n, p.Tokens)
			}
			shown := textsOf(p.Prompt.Messages)
			back = back || strings.Contains(shown, "[Rehydrated Content")
			injected = injected || strings.Contains(shown, "[Recalled Content")
			for _, s := range p.Prompt.System {
				memory = memory || strings.Contains(s.Text, "holds the keys")
			}
			if p.PlanVersion > 0 && mentioned == "" {
				if aside := k.inForce().Externalizations; len(aside) > 0 {
					mentioned = "I look at " + aside[0].ArtifactID + " again. "
				}
			}
			if n%5 == 4 {
				if _, err := k.Remember(t.Context(), "t", api.Any, fmt.Sprintf("Kim %d holds the keys of the shelf.", n)); err != nil {
					t.Fatal(err)
				}
			}
			id := fmt.Sprint("c", n)
			call := calling(id, "inspect", fmt.Sprintf(`{"shelf":%d}`, n))
			if n%3 == 2 && mentioned != "" {
				call.Parts = append([]neutral.Part{{Type: neutral.TextPart, Text: mentioned}}, call.Parts...)
				mentioned = ""
			}
			k.answer(call)
			news = []neutral.Message{resulting(id, "inspect", strings.Repeat(fmt.Sprintf("shelf_%d holds the blue box %d of lot zq%dx\n", n, n*7, n), 110))}
			if n%4 == 3 {
				k.add(news[0], said("assistant", "So it is."))
				news = []neutral.Message{said("user", fmt.Sprintf("What did shelf_%d hold of lot zq%dx?", n/2, n/2))}
			}
		}
		if !memory || !injected || name == "ladder" && !back {
			t.Errorf("%s: brought back %v, injected %v, memory %v: the test shows little", name, back, injected, memory)
		}
	}
}

// ourForms are the first lines of our summaries.
var ourForms = regexp.MustCompile(`(?m)^(\[Context Summary - Turns |## Session Summary \(|\[conv\.range\.summary |Compacted context summary:|\[COMPACT SUMMARY\])`)

// TestOwnFormsComeInOverHTTP: a prompt that was compacted here, under any policy, and goes
// on as the history of another thread is recognized: what stands for messages is a recap
// in its log, the next compaction asks nobody to summarize it as conversation, and the
// rounds of a session are counted on. F10
func TestOwnFormsComeInOverHTTP(t *testing.T) {
	for name, p := range everyPolicy {
		config, step := palimpsest.Config{Policy: p}, api.Step{Window: 100_000, Output: 1_000}
		if name == "auto" || name == "notes" {
			step.Budget = 5_000
		}
		forms := []string{wire.Chat, wire.Anthropic}
		if name == "workstream" { // each API says the system's words in its own way
			forms = append(forms, wire.Responses, wire.Gemini)
		}
		for _, form := range forms {
			step.API = form
			k := talking(t, config, step)
			var body json.RawMessage
			k.shelves(14, func(_ int, p *api.Prepared) { body = p.Body })
			stands := 0
			for _, ref := range k.inForce().Refs() {
				if ref.Action == plan.Summarize {
					stands++
				}
			}
			if stands == 0 {
				t.Fatalf("%s: nothing is summarized", name)
			}
			next := talking(t, config, step)
			if _, err := next.Append(t.Context(), "t", 0, api.Append{API: form, Body: body}); err != nil {
				t.Fatal(err)
			}
			log, _ := next.log()
			recaps := 0
			for _, m := range log {
				found := len(ourForms.FindAllString(textOf(m), -1))
				if m.Kind == "recap" {
					recaps += found
				} else if found > 0 {
					t.Errorf("%s, %s: kind %q of %.80q", name, form, m.Kind, textOf(m))
				}
			}
			if recaps != stands {
				t.Errorf("%s, %s: %d summaries come in, want %d", name, form, recaps, stands)
			}
		}
	}
}
