package palimpsest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const lookOut = "Keep everything about the tariff of zone Z7."

// TestInstructionsReachTheModel: whatever the policy, the model that writes the
// summary is told what the user asks, outside of all that is data, and the plan
// records it; a compaction without instructions says nothing of the kind.
func TestInstructionsReachTheModel(t *testing.T) {
	for _, instructions := range []string{"", lookOut} {
		asked := map[string]*llmtest.Scripted{}
		scripted := func(name string) *llmtest.Scripted {
			turn := llmtest.Fail(llm.ErrServer)
			asked[name] = llmtest.Script(turn, turn, turn, turn, turn, turn, turn, turn)
			return asked[name]
		}
		policies := []policy.Policy{
			policy.Auto{}, policy.Ladder{MaxInputTokens: loopBudget, DisableExternalization: true},
			policy.Session{ContextLimit: 25_000, Model: scripted("session")}, policy.Timeline{Model: scripted("timeline")},
			policy.Workstream{ContextSize: loopBudget, Model: scripted("workstream")}, policy.Loop{ContextLimit: loopBudget, Model: scripted("loop")},
		}
		for _, p := range policies {
			t.Run(p.Name()+"/"+instructions, func(t *testing.T) {
				config := palimpsest.Config{Policy: p}
				if asked[p.Name()] == nil {
					config.Summarizer = model.New(nil, scripted(p.Name()))
				}
				c, err := palimpsest.New(config)
				if err != nil {
					t.Fatal(err)
				}
				th := c.Session("t")
				step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: loopBudget, Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
				for n := range 24 {
					call, result := work(n)
					call.Parts = append([]thread.Part{thread.Text{Text: strings.Repeat("I think about the queue and its orders, and about what is left to do. ", 12)}}, call.Parts...)
					step.Messages = append(step.Messages, call, result)
					if n%4 == 3 {
						step.Messages = append(step.Messages, plain(thread.Assistant, "These are tidy."), plain(thread.User, "Good, the next ones."))
					}
				}
				made, err := th.Compact(t.Context(), step, instructions)
				if err != nil && p.Name() != "session" && p.Name() != "workstream" { // these fail with their model
					t.Fatal(err)
				}
				if made != nil && made.Instructions != instructions {
					t.Errorf("the plan records %q", made.Instructions)
				}
				requests := asked[p.Name()].Asked()
				if len(requests) == 0 {
					t.Fatal("no model was asked")
				}
				for _, q := range requests {
					text := q.Prompt.Messages[len(q.Prompt.Messages)-1].Text()
					if got := strings.Contains(text, lookOut); got != (instructions != "") {
						t.Errorf("the model is asked:\n%s", text[max(0, len(text)-600):])
					}
				}
			})
		}
	}
}

// TestInstructionsRankHigher: without a model, what holds the terms of the
// instructions is kept where it was left out before.
func TestInstructionsRankHigher(t *testing.T) {
	name := func(n int) string { // a word of its own
		return string([]rune{'b' + rune(n%20), 'a', 'l' + rune(n/20%10), 'o', 'g' + rune(n/200%5), 'u', 'm'})
	}
	compact := func(instructions string) *plan.Plan {
		t.Helper()
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Loop{ContextLimit: loopBudget, MaxOutput: 1000}})
		if err != nil {
			t.Fatal(err)
		}
		step := palimpsest.Step{Profile: render.For(wire.Anthropic), Messages: []thread.Message{plain(thread.User, "Tidy the queue.")}}
		for n := range 40 {
			call, result := work(n)
			remark := fmt.Sprintf("By the way, the %s of the %s area comes from another %s than those of the rest.", name(n), name(n+100), name(n+200))
			for k := range 6 {
				remark += fmt.Sprintf("\nThe %s of the %s area needs a %s, which was wrong.", name(n+40*k), name(n+300), name(n+400+20*k))
			}
			if n == 5 {
				remark = "By the way, the tariff of the seventh zone comes from another table than those of the rest."
			}
			call.Parts[0] = thread.Text{Text: strings.Repeat("The queue holds orders until somebody takes them out of it again, so much is plain. ", 3) + remark + " " + call.Text()}
			step.Messages = append(step.Messages, call, result)
		}
		p, err := c.Session("t").Compact(t.Context(), step, instructions)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const want = "tariff of the seventh zone"
	if strings.Contains(compact("").Summarizations[0].Stand[0].Text, want) {
		t.Fatal("it is kept anyway: the test shows nothing")
	}
	if text := compact("Keep what was said of any tariff and zone.").Summarizations[0].Stand[0].Text; !strings.Contains(text, want) {
		t.Errorf("it is not kept:\n%s", text)
	}
}

// TestEventsOfACompaction: a compaction is told of step by step, and why it was
// made, as a name. A18
func TestEventsOfACompaction(t *testing.T) {
	told := &recorder{}
	c, err := palimpsest.New(palimpsest.Config{Events: told, Recall: &palimpsest.Recall{}})
	if err != nil {
		t.Fatal(err)
	}
	th, _, _ := longLoop(t, c)
	plans, err := th.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	records := 0 // that are new: those that stay are not told again
	for n, p := range plans {
		var before *plan.Plan
		if n > 0 {
			before = plans[n-1]
		}
		records += len(p.Since(before))
	}
	for typ, want := range map[event.Type]int{
		event.PreCompact: len(plans), event.PlanCommitted: len(plans), event.Completed: len(plans), event.Retrieved: records, event.PlanConflict: 0,
	} {
		if got := told.count(typ); got != want {
			t.Errorf("%s: %d times, want %d", typ, got, want)
		}
	}
	if got := told.count(event.ProposalGenerated); got < records {
		t.Errorf("%d proposals for %d records", got, records)
	}
	for _, e := range told.events {
		why, _ := e.Details["why"].(string)
		due, _ := e.Details["due"].(bool)
		if (e.Type == event.PreCompact || e.Type == event.CheckStarted && due) && !strings.HasPrefix(why, "the-request-takes-") {
			t.Errorf("%s: why %q", e.Type, why)
		}
		for _, attr := range e.Attrs() {
			if strings.HasPrefix(attr.Key, "details.why") && attr.Value.String() != why {
				t.Errorf("the gate stops %q: %s", why, attr.Value)
			}
		}
	}
}

// TestEveryTypeIsEmitted: there is no type of event that nothing emits.
func TestEveryTypeIsEmitted(t *testing.T) {
	source := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var code strings.Builder
	for _, pattern := range []string{"*.go", "policy/*.go", "rehydrate/*.go", "event/quality/*.go", "summarize/*.go", "proxy/*.go", "event/event.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !strings.HasSuffix(f, "_test.go") {
				code.WriteString(source(f))
			}
		}
	}
	names := regexp.MustCompile(`(?m)^\t([A-Z]\w+) +(?:Type )?= "`).FindAllStringSubmatch(source("event/type.go"), -1)
	types := regexp.MustCompile(`(?m)^\t([A-Z]\w+) +Type = "`).FindAllStringSubmatch(source("event/type.go"), -1)
	if len(types) < 15 || len(names) != len(types) {
		t.Fatalf("%d types of %d names were found", len(types), len(names))
	}
	for _, name := range types {
		if !strings.Contains(code.String(), "event."+name[1]) && !strings.Contains(code.String(), "Type = "+name[1]) && !strings.Contains(code.String(), "Type: "+name[1]) {
			t.Errorf("nothing emits event.%s", name[1])
		}
	}
}
