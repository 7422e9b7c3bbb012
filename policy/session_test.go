package policy_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// small makes the threshold (12,000 − 11,000) × 0.8 = 800 tokens.
const small = 12_000

// roundLimit makes it 2,000, so that several steps pass between two compactions
// of the flashcards.
const roundLimit = 13_500

// TestSessionFigure is the seed's picture: of 50 messages, the system prompt
// among them, those from 40 on stay behind the summary. B4, B5
func TestSessionFigure(t *testing.T) {
	long := strings.Repeat("x", 400)
	log := []thread.Message{say(thread.User, "Build a flashcard app")}
	for n := 1; n <= 19; n++ { // 2 to 39
		log = append(log, call(n, fmt.Sprintf("Step %d.", n), "Write", `{}`), toolResult(n, "Write", long))
	}
	tail := []thread.Message{
		call(40, "Adding SM-2...", "Write", `{}`), toolResult(40, "Write", "a"),
		call(42, "Testing...", "Bash", `{}`), toolResult(42, "Bash", "b"),
		call(44, "Fixing type error...", "Edit", `{}`), toolResult(44, "Edit", "c"),
		say(thread.Assistant, "All tests pass"), say(thread.User, "Add AI integration"),
		call(48, "I'll add OpenAI...", "Write", `{}`), toolResult(48, "Write", "d"),
	}
	log = append(log, tail...)
	base := &prompt.Prompt{System: []prompt.System{{Text: "You are an agent."}}}
	if len(log)+len(base.System) != 50 {
		t.Fatalf("%d messages", len(log))
	}
	model := llmtest.Script(llmtest.Say("### Session Summary (Compaction Round 1)\n#### Current State\n- Working on: AI integration"))
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: small}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Base: base, Messages: log})
	if err != nil {
		t.Fatal(err)
	}
	want := append([]string{"assistant: ## Session Summary (Compaction Round 1)"}, shape(tail)...)
	if diff := cmp.Diff(want, shape(out.Messages)); diff != "" {
		t.Errorf("after compaction (-want +got):\n%s", diff)
	}
	asked := model.Asked()[0].Prompt.Messages[0].Text()
	if !strings.Contains(asked, "[38] TOOL:") || strings.Contains(asked, "[39] ") || strings.Contains(asked, "SM-2") {
		t.Errorf("the summarizer reads other messages than 1 to 39:\n%s", asked)
	}
}

// TestSessionRounds: over several rounds each summary goes on from the one before
// and the task stays word for word. The golden file holds what the summarizer
// is asked, the events, and the prompts. B5 to B9, B12
func TestSessionRounds(t *testing.T) {
	answer := func(n int) llmtest.Turn {
		var done strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintf(&done, "| src/part%d.ts | Write | wrote part %d |\n", 6*i-5, 6*i-5)
		}
		return llmtest.Say(fmt.Sprintf("### Session Summary (Compaction Round %d)\n\n#### Original Task\nSome app.\n\n#### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n%s\n#### Pending Work\n- [ ] add feature", n, done.String()))
	}
	r := &trace{model: llmtest.Script(answer(1), answer(2), answer(3), answer(4), answer(5))}
	th, prompts := run(t, policy.Session{Model: r.model, ContextLimit: roundLimit, Timeout: time.Minute}, r, 24, palimpsest.Step{})
	golden.Equal(t, "testdata/session.golden", r.String())
	texts := plans(t, th, 3)
	for n, text := range texts {
		for i := range n + 1 {
			if !strings.Contains(text, fmt.Sprintf("src/part%d.ts", 6*i+1)) {
				t.Errorf("summary %d has lost round %d:\n%s", n+1, i+1, text)
			}
		}
		if !strings.HasPrefix(text, fmt.Sprintf("## Session Summary (Compaction Round %d)\n\n### Original Task\nBuild a flashcard app.\nNever touch legacy/.\n", n+1)) {
			t.Errorf("summary %d:\n%s", n+1, text)
		}
		asked := r.model.Asked()[n].Prompt.Messages[0].Text()
		if n > 0 && !strings.Contains(asked, texts[n-1]) {
			t.Errorf("round %d is not given the summary of the round before", n+1)
		}
		if _, messages, _ := strings.Cut(asked, "## Messages to Summarize\n"); strings.Contains(messages, fmt.Sprintf("| wrote part %d |", 6*n-5)) {
			t.Errorf("round %d is given the earlier summary as content", n+1)
		}
	}
	breaks := 0
	for n := 1; n < len(prompts); n++ {
		before := prompts[n-1].Messages
		if now := prompts[n].Messages; len(now) < len(before) || !reflect.DeepEqual(now[:len(before)], before) {
			breaks++
		}
	}
	if breaks != len(texts) {
		t.Errorf("the prefix changed %d times over %d compactions", breaks, len(texts))
	}
}

// TestSessionWithoutModel: code writes the same sections, and what the first
// round knew is still there in the last. B6, B9
func TestSessionWithoutModel(t *testing.T) {
	r := &trace{model: llmtest.Script()}
	th, _ := run(t, policy.Session{ContextLimit: roundLimit}, r, 24, palimpsest.Step{})
	texts := plans(t, th, 3)
	last := texts[len(texts)-1]
	golden.Equal(t, "testdata/session_extractive.golden", last)
	for _, want := range []string{"### Original Task\nBuild a flashcard app.\nNever touch legacy/.\n", "| src/part0.ts |", "src/part6.ts", "Now add feature 1."} {
		if !strings.Contains(last, want) {
			t.Errorf("the last summary has no %q:\n%s", want, last)
		}
	}
}

// slow is a model that answers when its context ends.
type slow struct{ llmtest.Echo }

func (slow) Generate(ctx context.Context, _ *prompt.Prompt, o *llm.Options) (*llm.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	<-ctx.Done()
	return nil, &llm.APIError{Kind: llm.ErrTimeout, Err: ctx.Err()}
}

// failures are the ways in which a summarizer fails, each with the class that
// events tell.
func failures() map[string]llm.Generator {
	script := func(reply llm.Reply) llm.Generator { return llmtest.Script(llmtest.Turn{Reply: reply}) }
	return map[string]llm.Generator{
		"error":       llmtest.Script(llmtest.Fail(llm.ErrServer)),
		"overflow":    llmtest.Script(llmtest.Fail(llm.ErrOverflow)),
		"plain error": llmtest.Script(llmtest.Fail(errors.New("broken"))),
		"timeout":     slow{},
		"empty":       llmtest.Script(llmtest.Say(" \n")),
		"refusal":     script(llm.Reply{Text: "I cannot.", Stop: wire.StopRefusal}),
		"filtered":    script(llm.Reply{Text: "Half", Stop: wire.StopFilter}),
		"cut off":     script(llm.Reply{Text: "## Session Sum", Stop: wire.StopLength}),
		"window full": script(llm.Reply{Text: "## Session Sum", Stop: wire.StopContext}),
		"tool call": script(llm.Reply{Stop: wire.StopTool, Message: thread.Message{Parts: []thread.Part{
			thread.Text{Text: "I look first."}, thread.ToolCall{ID: "c", Name: "Read", Arguments: "{}"},
		}}}),
	}
}

// due is a log that is due for both policies of these tests, and a step around
// it.
func due() palimpsest.Step {
	var log []thread.Message
	for n := range 14 {
		news, answer := flashcards(n)
		log = append(append(log, news...), answer)
	}
	return palimpsest.Step{Messages: append(log, toolResult(13, "Write", "ok"))}
}

// TestSessionBeforeTheFirstTurn: what was done before anything that the user said, as after a
// summary that came with the conversation, is in no turn. B6
func TestSessionBeforeTheFirstTurn(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{ContextLimit: small}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: due().Messages[1:]})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.Messages[0].Text(); !strings.Contains(text, "### Completed Work") || strings.Contains(text, "turn 0") {
		t.Error(text)
	}
}

// TestSessionFailures: whatever happens to the summarizer, the agent goes on
// with the messages unchanged, and an event says so. B10
func TestSessionFailures(t *testing.T) {
	for name, model := range failures() {
		t.Run(name, func(t *testing.T) {
			told := &trace{}
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: small, Timeout: time.Millisecond}, Events: told})
			if err != nil {
				t.Fatal(err)
			}
			step := due()
			th := c.Session("t")
			out, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shape(step.Messages), shape(out.Messages)); diff != "" {
				t.Errorf("the messages are not what they were:\n%s", diff)
			}
			if got, err := th.Plans(t.Context()); err != nil || len(got) != 0 {
				t.Errorf("%d plans, %v", len(got), err)
			}
			last := told.events[len(told.events)-1]
			if last.Type != event.Failed || last.Err == "" {
				t.Errorf("the last event is %+v", last)
			}

			// The provider refuses these messages: then code writes the summary.
			shorter, err := th.Overflowed(t.Context(), out, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(shorter.Messages) >= len(out.Messages) {
				t.Errorf("%d messages of %d are left", len(shorter.Messages), len(out.Messages))
			}
			if i := slices.IndexFunc(told.events, func(e event.Event) bool { return e.Type == event.Completed }); i < 0 ||
				told.events[i].Err == "" || told.events[i].Details["fallback"] != "extractive" {
				t.Errorf("no event tells of the fallback: %+v", told.events)
			}
		})
	}
}

// TestSessionByCode: a summary by code names what the user laid down among the decisions, and what the user asked
// stands there once, in full and not shortened beside it. B6
func TestSessionByCode(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{ContextLimit: 14_000}})
	if err != nil {
		t.Fatal(err)
	}
	log := []thread.Message{say(thread.User, "Build the till of the shop."), say(thread.Assistant, "I begin.")}
	for n := range 12 {
		log = append(log, say(thread.User, fmt.Sprintf("Now shelf %d, please. ", n)+strings.Repeat("It holds cups and plates of all sizes. ", 30)), say(thread.Assistant, fmt.Sprintf("Shelf %d stands.", n)))
	}
	log = slices.Insert(log, 3, say(thread.User, "Never write prices as floats, always in cents."), say(thread.Assistant, "In cents."))
	out, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: append(log, say(thread.User, "Go on."))})
	if err != nil {
		t.Fatal(err)
	}
	text := out.Messages[0].Text()
	_, decisions, _ := strings.Cut(text, "### Key Technical Decisions\n")
	decisions, _, _ = strings.Cut(decisions, "\n### ")
	if !strings.Contains(decisions, "- Never write prices as floats") {
		t.Errorf("the decisions are %q", decisions)
	}
	if strings.Count(text, "The user asked") != 1 || strings.Count(text, "Now shelf 3, please.") != 1 {
		t.Errorf("what the user asked stands there more than once: %s", text)
	}
}

// TestSessionStateByCode: where nothing of a model's current state is true, code names the requests there that have no
// room in full, as in a summary of its own. B6
func TestSessionStateByCode(t *testing.T) {
	log := []thread.Message{say(thread.User, "Build the till of the shop."), say(thread.Assistant, "I begin.")}
	for n := range 40 {
		log = append(log, say(thread.User, fmt.Sprintf("Now shelf %d, please. ", n)+strings.Repeat("It holds cups and plates of all sizes. ", 30)), say(thread.Assistant, fmt.Sprintf("Shelf %d stands.", n)))
	}
	summarized := func(model llm.Generator) string {
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{Model: model, ContextLimit: 14_000}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Session("t").PrepareStep(t.Context(), palimpsest.Step{Messages: append(slices.Clone(log), say(thread.User, "Go on."))})
		if err != nil {
			t.Fatal(err)
		}
		return out.Messages[0].Text()
	}
	const done = "### Completed Work\n- Shelf 3 stands.\n"
	answer := llmtest.Say(done + "\n### Current State\n- Working on: `warehouse/roof.go:417`\n")
	text := summarized(llmtest.Script(slices.Repeat([]llmtest.Turn{answer}, 9)...))
	got, want := strings.Count(text, "Now shelf "), strings.Count(summarized(nil), "Now shelf ")
	if got != want || !strings.Contains(text, done) || strings.Contains(text, "roof.go") {
		t.Errorf("%d requests are named, %d where code writes all:\n%s", got, want, text)
	}
}

// TestSessionEdges are the seed's edge cases. B4, B5
func TestSessionEdges(t *testing.T) {
	huge := strings.Repeat("x", 1_000)
	pairs := func(n int) (log []thread.Message) {
		log = []thread.Message{say(thread.User, huge)}
		for i := range n {
			log = append(log, call(i, "", "Read", `{}`), toolResult(i, "Read", huge))
		}
		return log
	}
	parallel := say(thread.Assistant, "Twelve at once.")
	many := []thread.Message{say(thread.User, huge), parallel}
	for i := range 12 {
		many[1].Parts = append(many[1].Parts, thread.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "Read", Arguments: `{}`})
		many = append(many, toolResult(i, "Read", huge))
	}
	for _, test := range []struct {
		name string
		log  []thread.Message
		keep int // how many messages of the log stay; 0: nothing is compacted
	}{
		{"empty", nil, 0},
		{"one message", pairs(0), 0},
		{"keep+1 with the system prompt", append(pairs(4), say(thread.User, "more")), 0},
		{"one more", append(pairs(4), say(thread.User, "more"), say(thread.Assistant, "yes")), 10},
		{"the boundary is a result", append(pairs(6), say(thread.User, "more")), 11},
		{"a batch is larger than keep", many, 13},
		{"everything is recent", many[1:], 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Session{ContextLimit: small}})
			if err != nil {
				t.Fatal(err)
			}
			th := c.Session("t")
			out, err := th.PrepareStep(t.Context(), palimpsest.Step{Messages: test.log})
			if err != nil {
				t.Fatal(err)
			}
			want := shape(test.log)
			if test.keep > 0 {
				want = append([]string{"assistant: ## Session Summary (Compaction Round 1)"}, want[len(want)-test.keep:]...)
			}
			if diff := cmp.Diff(want, shape(out.Messages)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := th.Compact(t.Context(), palimpsest.Step{}, ""); test.keep == 0 && !errors.Is(err, policy.ErrNothing) {
				t.Errorf("asked for a compaction: %v", err)
			}
		})
	}
}

// TestOverflowedTwice: a provider that refuses the request all the same gets
// less of the newest part each time, down to the last message.
func TestOverflowedTwice(t *testing.T) {
	for _, p := range []policy.Policy{policy.Session{}, policy.Loop{}} {
		c, err := palimpsest.New(palimpsest.Config{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		th := c.Session("t")
		out, err := th.PrepareStep(t.Context(), due())
		if err != nil {
			t.Fatal(err)
		}
		shown := len(out.Messages)
		for n := range 2 {
			if out, err = th.Overflowed(t.Context(), out, nil); err != nil {
				t.Fatalf("%s, refused %d times: %v", p.Name(), n+1, err)
			}
			if len(out.Messages) >= shown {
				t.Errorf("%s, refused %d times: %d messages after %d", p.Name(), n+1, len(out.Messages), shown)
			}
			shown = len(out.Messages)
		}
		for n := 0; err == nil && n < 10; n++ {
			out, err = th.Overflowed(t.Context(), out, nil)
		}
		if !errors.Is(err, palimpsest.ErrNoRoom) {
			t.Errorf("%s, in the end: %v", p.Name(), err)
		}
	}
}

// TestSessionGoesOnWithItsSummary: a conversation that comes back with a summary of
// round 2 in it goes on with round 3, and the summary is passed on, not summarized.
// B5, B8
func TestSessionGoesOnWithItsSummary(t *testing.T) {
	earlier := speak(thread.Assistant, "## Session Summary (Compaction Round 2)\n\n### Original Task\nBuild the shop, never touch legacy/.\n\n### Current State\n- Working on: the till")
	earlier.Kind = thread.Recap
	messages := []thread.Message{earlier}
	for n := range 30 {
		messages = append(messages, speak(thread.User, fmt.Sprintf("Now part %d.", n)), speak(thread.Assistant, fmt.Sprintf("Part %d is done.", n)))
	}
	s := stateOf(t, threadOf(t, messages...), nil)
	s.Forced, s.Summarizer = true, &summarize.Extractive{Counter: s.Counter.Text}
	f, err := policy.Session{}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	text := f.Plan.Summarizations[0].Stand[0].Text
	if !strings.HasPrefix(text, "## Session Summary (Compaction Round 3)") {
		t.Errorf("the summary begins %.80q", text)
	}
}
