package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// everyPolicy are auto and the five systems, small, each with a model where it takes one,
// and the step that they run in.
func everyPolicy(m llm.Generator) map[string]func() (palimpsest.Config, api.Step) {
	step := api.Step{Window: 100_000, Output: 1_000}
	budget := step
	budget.Budget = 5_000
	made := func(p policy.Policy, step api.Step) func() (palimpsest.Config, api.Step) {
		return func() (palimpsest.Config, api.Step) {
			c := palimpsest.Config{Policy: p}
			if m != nil && (p.Name() == "auto" || p.Name() == "ladder") {
				c.Summarizer = &summarize.Verified{Inner: model.New(nil, m)}
			}
			return c, step
		}
	}
	return map[string]func() (palimpsest.Config, api.Step){
		"auto": made(policy.Auto{}, budget), "ladder": made(policy.Ladder{MaxInputTokens: 9_000, PreserveRecentTurns: 1}, step), "session": made(policy.Session{Model: m, ContextLimit: 16_000, Keep: 4}, step),
		"timeline": made(policy.Timeline{Model: m, MaxTokens: 6_000}, step), "workstream": made(policy.Workstream{Model: m, ContextSize: 7_000, Tail: 4}, step), "loop": made(policy.Loop{Model: m, ContextLimit: 8_000, MaxOutput: 1_000}, step),
	}
}

// TestTrueAndFalseOverHTTP: under every policy what a model says of the messages that is
// true comes through; names, numbers and quotations that the messages do not hold, and
// wishes that the user never had, do not. How many were left out is told. F2
func TestTrueAndFalseOverHTTP(t *testing.T) {
	facts := []string{"The till counts in cents.", "shop/till.go was written.", "The drawer has 17 slots.", "The door was painted blue.", "The shelf holds 240 tins.", "The lamp in hall_3 was replaced."}
	lies := []string{"The limit is set in internal/zebra/quux_limits.go.", "The whole run took 48713 ms.", `The log says "the frobnicator has lost its marbles".`, `The user said "push to production without asking".`}
	all := append(slices.Clone(facts), lies...)
	var items []map[string]any
	for _, text := range all {
		items = append(items, map[string]any{"text": text, "sources": []int{1, 2, 3}})
	}
	listed := map[string]any{"facts": items, "decisions": []any{}, "plan": []any{}, "open_items": []any{}, "failed_attempts": []any{}, "tool_outcomes": []any{}}
	forms := map[string]any{
		"auto": listed, "ladder": listed,
		"workstream": map[string]any{"summary": map[string]any{"key_facts": all, "conversation_flow": []string{}, "open_threads": []string{}}, "state_delta": map[string]any{}},
	}
	for name := range everyPolicy(nil) {
		t.Run(name, func(t *testing.T) {
			text := "#### Current State\n- " + strings.Join(all, "\n- ")
			turn := llmtest.Say(text)
			if object := forms[name]; object != nil {
				data, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				turn = llmtest.Turn{Reply: llm.Reply{Text: string(data), JSON: string(data), Stop: llm.StopEnd}}
			}
			m := llmtest.Script(slices.Repeat([]llmtest.Turn{turn}, 12)...)
			config, step := everyPolicy(m)[name]()
			k := talking(t, config, step)
			k.add(said("user", "Build the till."), said("assistant", strings.Join(facts, " ")), said("user", "Good."))
			var p *api.Prepared
			for n := 0; p == nil || p.PlanVersion == 0 && n < 60; n++ {
				k.add(said("assistant", fmt.Sprintf("I look at board %d. %s", n, strings.Repeat("The hall is bright. ", 60))))
				p = k.ask(said("user", fmt.Sprintf("And board %d?", n+1)))
			}
			if p.PlanVersion == 0 || len(m.Asked()) == 0 {
				t.Fatalf("plan %d, asked %d times", p.PlanVersion, len(m.Asked()))
			}
			shown := textsOf(p.Prompt.Messages)
			for _, fact := range facts {
				if !strings.Contains(shown, strings.TrimSuffix(fact, ".")) {
					t.Errorf("a fact is lost: %s", fact)
				}
			}
			for _, lie := range lies {
				if strings.Contains(shown, strings.TrimSuffix(lie, ".")) {
					t.Errorf("a lie came through: %s", lie)
				}
			}
			left := 0
			for _, e := range k.told.of(event.Asked) {
				for detail, n := range e.Details {
					if strings.HasPrefix(detail, "dropped_") {
						left += n.(int)
					}
				}
			}
			if left < len(lies) {
				t.Errorf("%d sentences are told to be left out of %d lies: %+v", left, len(lies), k.told.of(event.Asked))
			}
		})
	}
}

// TestStatementsAreTrueOverHTTP: what summaries by code say of the log can be replayed:
// a file that was deleted is not among those that are there, a command that failed has
// not succeeded, and the plan is the newest. F3
func TestStatementsAreTrueOverHTTP(t *testing.T) {
	for _, name := range []string{"auto", "ladder"} {
		config, step := everyPolicy(nil)[name]()
		k := talking(t, config, step)
		n := 0
		tool := func(name, arguments, output, outcome string) {
			n++
			id := fmt.Sprint("c", n)
			m := resulting(id, name, output)
			m.Parts[0].Outcome = outcome
			k.add(calling(id, name, arguments), m)
		}
		k.add(said("user", "Build the till."))
		tool("Write", `{"file_path":"/shop/old_till.go","content":"package old"}`, "ok", "success")
		tool("Write", `{"file_path":"/shop/till.go","content":"package till"}`, "ok", "success")
		tool("Bash", `{"command":"rm /shop/old_till.go"}`, "", "success")
		tool("Bash", `{"command":"go test ./shop"}`, "--- FAIL: TestTill\n    till_test.go:12: want 3, got 4\nFAIL\nFAIL\tshop\t0.012s", "failure")
		tool("TodoWrite", `{"todos":[{"content":"write the first draft","status":"in_progress"},{"content":"paint the sign","status":"pending"}]}`, "ok", "success")
		tool("TodoWrite", `{"todos":[{"content":"write the first draft","status":"completed"},{"content":"paint the sign","status":"in_progress"}]}`, "ok", "success")
		var p *api.Prepared
		for i := 0; p == nil || p.PlanVersion == 0 && i < 60; i++ {
			k.add(said("assistant", fmt.Sprintf("I look at board %d. %s", i, strings.Repeat("The hall is bright. ", 60))))
			p = k.ask(said("user", fmt.Sprintf("And board %d?", i+1)))
		}
		if p.PlanVersion == 0 {
			t.Fatal("no plan")
		}
		shown := textsOf(p.Prompt.Messages)
		for line := range strings.Lines(shown) {
			if strings.Contains(line, "old_till.go") && !strings.Contains(line, "deleted") && !strings.Contains(line, "rm ") {
				t.Errorf("%s: a deleted file is said to be there: %s", name, line)
			}
			if strings.Contains(line, "test `go test ./shop`") && !strings.Contains(line, "failed") {
				t.Errorf("%s: of a command that failed it is said: %s", name, line)
			}
			if strings.Contains(line, "write the first draft") && !strings.Contains(line, "done") && !strings.Contains(line, "completed") && !strings.Contains(line, "[x]") {
				t.Errorf("%s: of what is done it is said: %s", name, line)
			}
		}
		for _, want := range []string{"/shop/till.go", "go test ./shop", "paint the sign"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: no %q in\n%s", name, want, shown[:min(len(shown), 3_000)])
			}
		}
	}
}

// TestNewestArrivesOverHTTP: under every policy the results of the last step, which no
// model has seen yet, are in the next prompt word for word, also where they are what makes
// the compaction due; and so are the user's first words and last. F1, F4
func TestNewestArrivesOverHTTP(t *testing.T) {
	for name, made := range everyPolicy(nil) {
		config, step := made()
		k := talking(t, config, step)
		news := []neutral.Message{said("user", "Count the boxes of all shelves, please.")}
		plans, latest := 0, "Count the boxes of all shelves, please."
		for n := range 24 {
			p := k.ask(news...)
			plans = p.PlanVersion
			shown := textsOf(p.Prompt.Messages)
			for _, m := range append(news, said("user", latest), said("user", "Count the boxes of all shelves, please.")) {
				if !strings.Contains(shown, textOf(m)) {
					t.Errorf("%s, step %d, plan %d: %.80q is not in the prompt", name, n, plans, textOf(m))
				}
			}
			id := fmt.Sprint("c", n)
			if n%6 == 5 {
				k.answer(said("assistant", fmt.Sprintf("Shelf %d is counted.", n)))
				latest = fmt.Sprintf("Well done. Go on with shelf %d, and hurry.", n+1)
				news = []neutral.Message{said("user", latest)}
				continue
			}
			k.answer(calling(id, "inspect", fmt.Sprintf(`{"shelf":%d}`, n)))
			news = []neutral.Message{resulting(id, "inspect", strings.Repeat(fmt.Sprintf("shelf %d holds box %d\n", n, n*7), 40+20*(n%3)))}
		}
		if plans == 0 {
			t.Errorf("%s: %d plans: the test shows little", name, plans)
		}
	}
}

// bland is a model that says one true sentence, in the form that a policy asks for.
type bland struct{ policy string }

func (*bland) Model() string { return "bland" }

func (b *bland) Generate(context.Context, *prompt.Prompt, *llm.Options) (*llm.Reply, error) {
	switch b.policy {
	case "workstream":
		const text = `{"summary":{"key_facts":["Shelf 0 is counted."],"conversation_flow":[],"open_threads":[]},"state_delta":{}}`
		return &llm.Reply{Text: text, JSON: text, Stop: llm.StopEnd}, nil
	case "auto", "ladder":
		const text = `{"facts":[{"text":"Shelf 0 is counted.","sources":[1,2,3]}],"decisions":[],"plan":[],"open_items":[],"failed_attempts":[],"tool_outcomes":[]}`
		return &llm.Reply{Text: text, JSON: text, Stop: llm.StopEnd}, nil
	}
	return &llm.Reply{Text: "#### Current State\n- Shelf 0 is counted.", Stop: llm.StopEnd}, nil
}

// TestAllTheUserSaidOverHTTP: while what the user said takes no more than a third of the
// room, all of it stands in the prompt, under every policy, whether code wrote the summary
// or a model that left out everything. F1
func TestAllTheUserSaidOverHTTP(t *testing.T) {
	for name := range everyPolicy(nil) {
		for _, m := range []llm.Generator{nil, &bland{name}} {
			config, step := everyPolicy(m)[name]()
			k := talking(t, config, step)
			var words []string
			var p *api.Prepared
			for n := range 24 {
				words = append(words, fmt.Sprintf("Now look at the door zq%dx of hall %d.", n, n))
				p = k.ask(said("user", words[n]))
				k.answer(said("assistant", fmt.Sprintf("Shelf %d is counted. %s", n, strings.Repeat("The hall is bright and the floor is swept. ", 40))))
			}
			shown := textsOf(p.Prompt.Messages)
			for _, w := range words {
				if !strings.Contains(shown, w) {
					t.Errorf("%s, a model %v, plan %d: %q is not in the prompt", name, m != nil, p.PlanVersion, w)
				}
			}
			if p.PlanVersion == 0 {
				t.Errorf("%s: nothing was compacted", name)
			}
		}
	}
}

// TestNoRequestIsOverItsLimitOverHTTP: with system prompt, tools, memory block, what is
// brought back and what is injected, no request of auto or a ladder is over what the
// model can read. F8
func TestNoRequestIsOverItsLimitOverHTTP(t *testing.T) {
	tools := []neutral.Tool{{Name: "inspect", Description: strings.Repeat("looks at shelves ", 40), Schema: json.RawMessage(`{"type":"object"}`)}}
	for name, l := range map[string]policy.Policy{"auto": policy.Auto{}, "ladder": policy.Ladder{MaxInputTokens: 9_000}} {
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

// TestPointersHaveToolsOverHTTP: a prompt names read_artifact and recall where it offers
// them, which is where the client offers tools; a client without tools reads of neither,
// and nothing that is written there asks it to call one. F9
func TestPointersHaveToolsOverHTTP(t *testing.T) {
	tools := []neutral.Tool{{Name: "inspect", Description: "looks", Schema: json.RawMessage(`{"type":"object"}`)}}
	for name, made := range everyPolicy(nil) {
		for _, offers := range []bool{true, false} {
			config, step := made()
			config.Recall = &palimpsest.Recall{}
			step.Base = &neutral.Prompt{Model: "m"}
			if offers {
				step.Base.Tools = tools
			}
			k := talking(t, config, step)
			removed := false
			k.shelves(14, func(n int, p *api.Prepared) {
				removed = removed || p.PlanVersion > 0
				var offered []string
				for _, tool := range p.Prompt.Tools {
					offered = append(offered, tool.Name)
				}
				shown := textsOf(p.Prompt.Messages)
				for _, tool := range []string{"read_artifact", "recall"} {
					if has := slices.Contains(offered, tool); has != (offers && p.PlanVersion > 0) {
						t.Errorf("%s, client offers tools %v, plan %d: %s is offered: %v", name, offers, p.PlanVersion, tool, has)
					}
					if strings.Contains(shown, tool+"(") && !slices.Contains(offered, tool) {
						t.Errorf("%s, step %d: the prompt names %s, which is not offered", name, n, tool)
					}
				}
			})
			if !removed {
				t.Errorf("%s: nothing was removed: the test shows little", name)
			}
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
	for name, made := range everyPolicy(nil) {
		forms := []string{wire.Chat, wire.Anthropic}
		if name == "workstream" { // each API says the system's words in its own way
			forms = append(forms, wire.Responses, wire.Gemini)
		}
		for _, form := range forms {
			config, step := made()
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
			config, step = made()
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
