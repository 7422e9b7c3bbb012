package palimpsest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize/model"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
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
	if p, err = s.Compact(t.Context(), palimpsest.Step{Budget: 18_000}, ""); err != nil { // it fits the other
		t.Fatal(err)
	}
	if got := action(); got != plan.Include {
		t.Errorf("after a compaction the pinned message is under %s", got)
	}
	if len(p.Pinned) != 1 || p.Pinned[0] != hidden || p.CompactedTokens > 18_000 {
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
		"notes":       policy.Notes{},
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
				if err := s.FinishStep(t.Context(), p, wire.Usage{}, plain(thread.Assistant, "Done"+strings.Repeat(" and done", 150))); err != nil {
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

// TestMemoryBlock: entries stand behind the system prompt of every prompt from
// then on, whatever is compacted or undone, and fold in their own cycle. D10
func TestMemoryBlock(t *testing.T) {
	for _, p := range allPolicies() {
		t.Run(p.Name(), func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: p})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			th := c.Session("ticket-4711")
			for n := range 17 {
				if err := th.Remember(ctx, fmt.Sprintf("Note %d: the port is 80%02d.", n, n)); err != nil {
					t.Fatal(err)
				}
			}
			th, step, _ := longLoop(t, c)
			shows := func() string {
				t.Helper()
				out, err := th.PrepareStep(ctx, step)
				if err != nil || len(out.System) != 1 {
					t.Fatalf("%d system blocks, %v", len(out.System), err)
				}
				return out.System[0].Text
			}
			text := shows()
			for n := range 17 {
				if !strings.Contains(text, fmt.Sprintf("the port is 80%02d.", n)) {
					t.Errorf("entry %d is gone:\n%s", n, text)
				}
			}
			if !strings.HasPrefix(text, "Memory summary:\n- Note 0") || strings.Count(text, "\n- Note") != 17 {
				t.Errorf("it was not folded:\n%s", text)
			}
			plans, err := th.Plans(ctx)
			if err != nil || len(plans) < 19 {
				t.Fatalf("%d plans, %v: nothing was compacted", len(plans), err)
			}
			if err := th.Undo(ctx, 0); err != nil {
				t.Fatal(err)
			}
			if all, err := th.Plans(ctx); err != nil || all[len(all)-1].OriginalTokens == 0 || all[len(all)-1].OriginalTokens != all[len(all)-1].CompactedTokens {
				t.Errorf("%v; with everything shown again the sizes are %+v", err, all[len(all)-1])
			}
			step.Budget = 0
			if p, err := th.PrepareStep(ctx, step); err != nil || len(p.System) != 0 {
				t.Errorf("%v; undoing everything leaves notes: %+v", err, p.System)
			}
			if err := th.Undo(ctx, len(plans)); err != nil {
				t.Fatal(err)
			}
			if shows() != text {
				t.Error("the plan that is in force again has other notes")
			}
		})
	}
}

// TestDecodedRequest: the tools and the memory block stand in a request that was
// read from a client, beside what the client put there, for each API.
func TestDecodedRequest(t *testing.T) {
	for _, codec := range []wire.Codec{anthropic.Codec{}, openai.Chat{}, openai.Responses{}, gemini.Codec{}} {
		t.Run(codec.API(), func(t *testing.T) {
			base, err := codec.Encode(&prompt.Prompt{
				Model: "m", MaxOutput: 1000, System: []prompt.System{{Text: "Be careful."}},
				Tools:    []prompt.Tool{{Name: "Read", Description: "Reads a file.", Schema: `{"type":"object","properties":{"file_path":{"type":"string"}}}`}},
				Messages: []thread.Message{plain(thread.User, "Tidy the queue.")},
			})
			if err != nil {
				t.Fatal(err)
			}
			client, err := codec.Decode(string(base))
			if err != nil {
				t.Fatal(err)
			}
			c, err := palimpsest.New(palimpsest.Config{Recall: &palimpsest.Recall{}})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			if err := th.Remember(t.Context(), "The port is 8080."); err != nil {
				t.Fatal(err)
			}
			step := palimpsest.Step{Base: client, Profile: render.For(codec.API()), Budget: loopBudget, Messages: client.Messages}
			for n := range 20 {
				call, result := work(n)
				step.Messages = append(step.Messages, call, result)
			}
			p, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			body, err := codec.Encode(p.Prompt)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range codec.Validate(body) {
				if !problem.Advice {
					t.Errorf("the provider would refuse: %v", problem)
				}
			}
			for _, want := range []string{"Be careful.", "The port is 8080.", "read_artifact", "\"recall\"", "Reads a file."} {
				if !strings.Contains(string(body), want) {
					t.Errorf("%s is not in the request", want)
				}
			}
		})
	}
}

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
				remark += "\nThe tariff of the zone area needs a table, which was wrong."
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
	const want = "tariff of the zone area"
	if strings.Contains(compact("").Summarizations[0].Stand[0].Text, want) {
		t.Fatal("it is kept anyway: the test shows nothing")
	}
	if text := compact("Keep what was said of any tariff and zone.").Summarizations[0].Stand[0].Text; !strings.Contains(text, want) {
		t.Errorf("it is not kept:\n%s", text)
	}
}
