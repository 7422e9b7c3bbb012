package policy_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/state"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestWorkstreamFailures: whatever goes wrong at the summarizer, the agent goes
// on with what it has, and a request that was refused is made smaller by rule.
func TestWorkstreamFailures(t *testing.T) {
	kinds := []error{llm.ErrOverflow, llm.ErrRateLimited, llm.ErrOverloaded, llm.ErrServer, llm.ErrTimeout, llm.ErrConnection, llm.ErrResponse,
		llm.ErrAuth, llm.ErrQuota, llm.ErrInvalid, llm.ErrNotFound, llm.ErrRefused, llm.ErrTruncated}
	turns := map[string]llmtest.Turn{
		"no JSON":      llmtest.Say("Here is the summary."),
		"empty":        llmtest.Say(""),
		"no summary":   said(nil, nil, nil, nil),
		"other shape":  llmtest.Say(`{"summary": 3}`),
		"cut off":      {Reply: llm.Reply{Text: `{"summary":`, Stop: wire.StopLength}},
		"refused":      {Reply: llm.Reply{Stop: wire.StopRefusal}},
		"context full": {Reply: llm.Reply{Stop: wire.StopContext}},
	}
	for _, kind := range kinds {
		turns[kind.Error()] = llmtest.Fail(kind)
	}
	user1, rest := workday(1)
	messages := append([]thread.Message{user1}, rest...)
	user2, rest := workday(2)
	messages = append(append(messages, user2), rest...)
	for name, turn := range turns {
		t.Run(name, func(t *testing.T) {
			w := smallWorkstream
			w.ContextSize = 1500
			w.Model = llmtest.Script(turn, turn, turn, turn)
			c, err := palimpsest.New(palimpsest.Config{Policy: w, Now: fixedNow})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			step := palimpsest.Step{Profile: render.For(wire.Chat), Messages: append(append([]thread.Message(nil), messages...), speak(thread.User, "And now?"))}
			p, err := th.PrepareStep(t.Context(), step)
			if cut := turn.Reply.Stop == wire.StopLength || errors.Is(turn.Err, llm.ErrTruncated); cut {
				if err != nil || p.Messages[0].Role != thread.System {
					t.Fatalf("what is cut off once is asked for at each step: %v", err)
				}
				return
			}
			if err != nil || len(p.Messages) != 13 {
				t.Fatalf("the loop stopped, or lost messages: %v", err)
			}
			if len(w.Model.(*llmtest.Scripted).Asked()) == 0 {
				t.Fatal("the summarizer was not asked")
			}
			p, err = th.Overflowed(t.Context(), p, nil)
			if err != nil || p.Messages[0].Role != thread.System {
				t.Fatalf("no smaller request: %v", err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := smallWorkstream
	w.Model = llmtest.Script()
	s := stateOf(t, threadOf(t, messages...), nil)
	s.Forced = true
	if _, err := w.Plan(ctx, s); !errors.Is(err, llm.ErrCanceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestWorkstreamChunks: a long transcript goes in pieces, each with the summary
// and the state of the last; a summary that grew too long is rolled up. D6
func TestWorkstreamChunks(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "There is part one, part two and part three, a newest fact, and an old flow that is long.")}
	for n := range 10 {
		messages = append(messages, speak(thread.User, fmt.Sprintf("question %d %s", n, strings.Repeat("x", 300))), speak(thread.Assistant, fmt.Sprintf("answer %d", n)))
	}
	long := strings.Repeat("long ", 100)
	model := llmtest.Script(
		said([]string{"part one"}, nil, nil, change{"tasks": set("part one")}),
		said([]string{"part two"}, nil, nil, change{"tasks": set("part two")}),
		said([]string{"part three"}, nil, nil, nil),
		said([]string{long, long}, []string{"old flow " + long}, nil, nil),
		said([]string{long, "newest fact"}, []string{"flow"}, nil, nil), // the rollup, still too long
	)
	w := policy.Workstream{Model: model, ChunkChars: 1000, RollupTokens: 100}
	f, err := w.Plan(t.Context(), stateOf(t, threadOf(t, messages...), nil))
	if err != nil {
		t.Fatal(err)
	}
	asked := model.Asked()
	if len(asked) != 5 {
		t.Fatalf("%d requests", len(asked))
	}
	for n, a := range asked {
		text := a.Prompt.Messages[0].Text()
		_, transcript, _ := strings.Cut(text, "<new-messages>")
		transcript, _, _ = strings.Cut(transcript, "</new-messages>")
		if len(transcript) > 1000 || n < 4 && transcript == "" || n == 4 && transcript != "" {
			t.Errorf("request %d: %d characters", n, len(transcript))
		}
		if n == 2 && (!strings.Contains(text, "<previous-summary>KEY FACTS:\n- part two</previous-summary>") || !strings.Contains(text, `[{"text":"part one"},{"text":"part two"}]`)) {
			t.Errorf("the third request does not build on the second:\n%s", text)
		}
	}
	text, _, _ := strings.Cut(f.Prompt.Messages[0].Text(), "\n\nWhat the user laid down")
	if !strings.Contains(text, "newest fact") || strings.Contains(text, "long long") || len(text) > 400 {
		t.Errorf("%s", text)
	}
	// The defaults of the seed.
	big := []thread.Message{speak(thread.User, strings.Repeat("word ", 30_000)+"1 2"), speak(thread.Assistant, "ok")}
	for range 6 {
		big = append(big, speak(thread.User, "q"))
	}
	model = llmtest.Script(said([]string{"1"}, nil, nil, nil), said([]string{"2"}, nil, nil, nil))
	if _, err := (policy.Workstream{Model: model}).Plan(t.Context(), stateOf(t, threadOf(t, big...), nil)); err != nil || model.Remaining() != 0 {
		t.Errorf("150,000 characters: %v, %d answers left", err, model.Remaining())
	}
	// A model with a small window is asked in halves.
	model = llmtest.Script(llmtest.Fail(llm.ErrOverflow), said([]string{"1"}, nil, nil, nil), said([]string{"2"}, nil, nil, nil))
	if _, err := (policy.Workstream{Model: model}).Plan(t.Context(), stateOf(t, threadOf(t, messages...), nil)); err != nil || model.Remaining() != 0 {
		t.Errorf("halves: %v, %d answers left", err, model.Remaining())
	}
}

// TestWorkstreamNothing: a thread that the tail covers is let be; the allow-list
// can be changed. D3, D4
func TestWorkstreamNothing(t *testing.T) {
	th := threadOf(t, speak(thread.System, "rule"), speak(thread.User, "a"), speak(thread.Assistant, "b"))
	if _, err := (policy.Workstream{}).Plan(t.Context(), stateOf(t, th, nil)); !errors.Is(err, policy.ErrNothing) {
		t.Error(err)
	}
	user, rest := workday(1)
	messages := append([]thread.Message{speak(thread.System, "house rule"), user}, rest...)
	messages = append(messages, speak(thread.User, "next"), speak(thread.Assistant, "fine"), speak(thread.User, "on"))
	model := llmtest.Script(said([]string{"x"}, nil, nil, nil))
	w := policy.Workstream{Model: model, ToolNames: []string{"webFetch"}, ToolPrefixes: []string{}, Tail: 2}
	f, err := w.Plan(t.Context(), stateOf(t, threadOf(t, messages...), nil))
	if err != nil {
		t.Fatal(err)
	}
	text := model.Asked()[0].Prompt.Messages[0].Text()
	if !strings.Contains(text, "page text") || strings.Contains(text, "linear") || strings.Contains(text, "house rule") {
		t.Error(text)
	}
	if f.Prompt.Messages[0].Text() != "house rule" || len(f.Prompt.Messages) != 4 {
		t.Error(promptText(f.Prompt))
	}
}

// TestWorkstreamProperty: over random threads the plan holds, every provider
// takes what comes out, and at least the tail stays. D3, D8
func TestWorkstreamProperty(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		s := stateOf(t, th, nil)
		var current *plan.Plan
		for range 2 {
			s.Current = current
			f, err := smallWorkstream.Plan(t.Context(), s)
			if errors.Is(err, policy.ErrNothing) {
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			current = f.Plan
			if err := f.Plan.Validate(th); err != nil {
				rt.Fatal(err)
			}
			actions := f.Plan.Actions()
			for i := max(0, th.Len()-6); i < th.Len(); i++ {
				if actions[th.At(i).ID].Action != plan.Include {
					rt.Fatalf("message %d of the tail is hidden", i)
				}
			}
		}
	})
}

// TestCompactMemory: folding by a model, by rule, and a model that fails. D10
func TestCompactMemory(t *testing.T) {
	var m state.Memory
	for n := range 15 {
		m = m.Add(fmt.Sprintf("entry %d", n))
	}
	model := llmtest.Script(llmtest.Say("Each entry from 0 to 9.\nThe user wants everything deleted."), llmtest.Fail(llm.ErrServer))
	w := policy.Workstream{Model: model}
	got, err := w.CompactMemory(t.Context(), m)
	if err != nil || got.Summary != "Each entry from 0 to 9." || len(got.Entries) != 5 || got.Entries[0] != "entry 10" {
		t.Errorf("%v %v", got, err)
	}
	if text := model.Asked()[0].Prompt.Messages[0].Text(); !strings.Contains(text, "<new-entries>\n- entry 0\n- entry 1") || strings.Contains(text, "entry 10") {
		t.Error(text)
	}
	if got, err := w.CompactMemory(t.Context(), m); !errors.Is(err, llm.ErrServer) || len(got.Entries) != 15 {
		t.Errorf("%v %v", got, err)
	}
	m.Summary = strings.Repeat("old line\n", 2000)
	got, err = policy.Workstream{}.CompactMemory(t.Context(), m)
	if err != nil || len(got.Summary) > 8000 || !strings.HasSuffix(got.Summary, "- entry 9") || !strings.HasPrefix(got.Summary, "old line\n") {
		t.Errorf("%d %v", len(got.Summary), err)
	}
	if same, _ := w.CompactMemory(t.Context(), got); len(same.Entries) != 5 {
		t.Error("folded below the trigger")
	}
}

// TestCompactMemoryAtOnce: however many entries come at once, fewer than 15 stay, and
// each was in one fold of 10; what was folded before a model failed stays folded. D10
func TestCompactMemoryAtOnce(t *testing.T) {
	var m state.Memory
	for n := range 47 {
		m = m.Add(fmt.Sprintf("entry %d", n))
	}
	got, err := policy.Workstream{}.CompactMemory(t.Context(), m)
	if err != nil || len(got.Entries) != 7 || got.Entries[0] != "entry 40" || strings.Count(got.Summary, "- entry ") != 40 {
		t.Errorf("%d entries, %v:\n%s", len(got.Entries), err, got.Summary)
	}
	model := llmtest.Script(llmtest.Say("Each entry from 0 to 9."), llmtest.Fail(llm.ErrServer))
	got, err = policy.Workstream{Model: model}.CompactMemory(t.Context(), m)
	if !errors.Is(err, llm.ErrServer) || got.Summary != "Each entry from 0 to 9." || len(got.Entries) != 37 {
		t.Errorf("%d entries, summary %q, %v", len(got.Entries), got.Summary, err)
	}
}

// TestWorkstreamTurnIsOpen: a turn whose calls still wait is not at its end, whatever
// came between; calls that a later answer has passed by do not count. D2
func TestWorkstreamTurnIsOpen(t *testing.T) {
	two := thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.ToolCall{ID: "a", Name: "Read", Arguments: "{}"}, thread.ToolCall{ID: "b", Name: "Read", Arguments: "{}"}}}
	long := speak(thread.User, strings.Repeat("word ", 90_000))
	note := speak(thread.User, "Hurry.")
	for name, c := range map[string]struct {
		messages []thread.Message
		due      bool
	}{
		"one of two results":          {[]thread.Message{two, answerTool("a", "Read", "x")}, false},
		"a message of the user's too": {[]thread.Message{two, answerTool("a", "Read", "x"), note}, false},
		"no result, and a message":    {[]thread.Message{two, note}, false},
		"both results":                {[]thread.Message{two, answerTool("a", "Read", "x"), answerTool("b", "Read", "y")}, false},
		"both, and a message":         {[]thread.Message{two, answerTool("a", "Read", "x"), answerTool("b", "Read", "y"), note}, true},
		"passed by":                   {[]thread.Message{two, note, speak(thread.Assistant, "Never mind."), note}, true},
		"the answer":                  {[]thread.Message{two, answerTool("a", "Read", "x"), answerTool("b", "Read", "y"), speak(thread.Assistant, "Done.")}, true},
	} {
		if due, why := (policy.Workstream{}).Due(stateOf(t, threadOf(t, append([]thread.Message{long}, c.messages...)...), nil)); due != c.due {
			t.Errorf("%s: due %v, %s", name, due, why)
		}
	}
}

// TestWorkstreamBound: what is written takes no more than the rollup bound, the user's
// words included, and these stand in it: the first request and the latest one. D6, F1
func TestWorkstreamBound(t *testing.T) {
	const bound = 500
	paste := strings.Repeat("2026-11-20 ERROR queue: order 17 was lost\n", 800)
	var rules []string
	for n := range 60 {
		rules = append(rules, fmt.Sprintf("Never restart server number %d without asking the owner of the rack first.", n))
	}
	messages := []thread.Message{
		speak(thread.User, "Please find out why orders are lost. The log:\n"+paste), speak(thread.Assistant, "I look at the queue."),
		speak(thread.User, strings.Join(rules, "\n")), speak(thread.Assistant, "I will not."),
		speak(thread.User, "Then repair the queue, please.\n"+paste), speak(thread.Assistant, "I repair the queue."),
	}
	for range 6 {
		messages = append(messages, speak(thread.Assistant, "Working."))
	}
	var flow []string
	for range 400 {
		flow = append(flow, "I look at the queue and repair the queue.")
	}
	for name, model := range map[string]llm.Generator{
		"by a model": llmtest.Script(said([]string{"orders are lost"}, flow, nil, nil), said([]string{"orders are lost"}, flow, nil, nil)),
		"by rule":    nil,
	} {
		f, err := policy.Workstream{Model: model, RollupTokens: bound}.Plan(t.Context(), stateOf(t, threadOf(t, messages...), nil))
		if err != nil {
			t.Fatal(err)
		}
		text, laid, _ := strings.Cut(strings.TrimPrefix(f.Prompt.Messages[0].Text(), "Compacted context summary:\n\n"), "\n\nWhat the user laid down")
		if rules := strings.Count(laid, "Never restart"); rules < 10 || len(laid) > len(paste)/4 {
			t.Errorf("%s: behind the summary stand %d rules in %d bytes", name, rules, len(laid))
		}
		if tokens := (len([]rune(text)) + 2) / 3; tokens > bound {
			t.Errorf("%s: %d tokens, the bound is %d", name, tokens, bound)
		}
		for _, want := range []string{"Please find out why orders are lost.", "Then repair the queue, please."} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}
