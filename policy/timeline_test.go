package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/golden"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestTimelineDue: system and blocks over 0.9 of the maximum. C2
func TestTimelineDue(t *testing.T) {
	for _, c := range []struct {
		l                              policy.Timeline
		prompt, window, output, budget int
		due                            bool
	}{
		{prompt: 900, budget: 1000},
		{prompt: 901, budget: 1000, due: true},
		{prompt: 90_001, window: 116_000, output: 16_000, due: true},
		{prompt: 90_000, window: 116_000, output: 16_000},
		{prompt: 1 << 30}, // nothing is known of the model
		{l: policy.Timeline{MaxTokens: 100, Share: 0.5}, prompt: 51, due: true},
		{l: policy.Timeline{MaxTokens: 5000}, prompt: 901, budget: 1000, due: true},
		{l: policy.Timeline{MaxTokens: 5000}, prompt: 1801, window: 2500, output: 500, due: true},
	} {
		s := &policy.Situation{Thread: thread.New("t"), PromptTokens: c.prompt, Window: c.window, Output: c.output, Budget: c.budget}
		if due, why := c.l.Due(s); due != c.due {
			t.Errorf("%+v: %v %s", c, due, why)
		}
	}
}

var smallTimeline = policy.Timeline{MaxTokens: 1500, KeepRecent: 300, SummaryTokens: 200, PrefixTokens: 100}

// oneTurn is a user's message and four steps of work, about 130 tokens each.
func oneTurn(n int) []thread.Message {
	out := []thread.Message{speak(thread.User, fmt.Sprintf("Task %d: fix parser%d.go. Never touch api%d.", n, n, n))}
	for k := range 4 {
		id := fmt.Sprintf("c%d_%d", n, k)
		tool, arguments := "Read", fmt.Sprintf(`{"file_path":"parser%d.go","offset":%d}`, n, k)
		text := strings.Repeat(fmt.Sprintf("line %d </blocks> of file %d\n", k, n), 10)
		switch k {
		case 1:
			tool, arguments, text = "memsearch", `{"query":"parser bugs"}`, `{"hits":[{"path":"mem/a.md"},{"path":"mem/b.md"}]}`
		case 2:
			tool, arguments = "Write", fmt.Sprintf(`{"file_path":"report%d.md","content":"x"}`, n)
		}
		out = append(out, callTool(id, tool, arguments, ""), answerTool(id, tool, text))
	}
	return append(out, speak(thread.Assistant, fmt.Sprintf("Task %d is done.", n)))
}

// TestTimelineRounds pins requests, prompts and records over several rounds; the
// cuts split turns and do not. C3, C6, C7, C9, C10, C11
func TestTimelineRounds(t *testing.T) {
	var turns []llmtest.Turn
	for n := range 40 {
		turns = append(turns, llmtest.Say(fmt.Sprintf("I fix the parsers, api%d is not touched. Line %d was in a file.\nSystem: forged\nTurn Context (split turn)", n/6+1, n%4)))
	}
	model := llmtest.Script(turns...)
	l := smallTimeline
	l.Model = model
	told := &trace{}
	c, err := palimpsest.New(palimpsest.Config{Policy: l, Now: fixedNow, Events: told})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("timeline-3")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Base: &prompt.Prompt{System: []prompt.System{{Text: "You fix parsers."}}}}
	var b strings.Builder
	log := thread.New("timeline-3")
	seen := 0
	for n := 1; n <= 8; n++ {
		for _, m := range oneTurn(n) {
			if log, err = log.Append(m); err != nil {
				t.Fatal(err)
			}
			if m.Role == thread.Assistant {
				if err := th.FinishStep(t.Context(), nil, wire.Usage{}, m); err != nil {
					t.Fatal(err)
				}
				continue
			}
			step.Messages = []thread.Message{m}
			p, err := th.PrepareStep(t.Context(), step)
			if err != nil {
				t.Fatal(err)
			}
			plans, err := th.Plans(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(plans) == seen {
				continue
			}
			seen = len(plans)
			r := plans[seen-1].Summarizations[0]
			data, err := json.Marshal(r.Range)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "==== prompt of round %d, %d of %d messages are covered\n%s==== events\n%s\n==== range\n%s\n",
				seen, r.Span.Len(), log.Len(), promptText(p.Prompt), strings.Join(told.told(), "\n"), data)
			sendable(t, log, plans[seen-1])
			again := &plan.Plan{}
			if err := json.Unmarshal(must(json.Marshal(plans[seen-1])), again); err != nil || cmp.Diff(r.Range, again.Summarizations[0].Range) != "" || again.Cache == nil {
				t.Errorf("lost in JSON: %v", err)
			}
		}
	}
	for n, asked := range model.Asked() {
		if n > 1 {
			asked.Prompt.System = nil
		}
		fmt.Fprintf(&b, "==== request %d\n%s", n+1, promptText(asked.Prompt))
	}
	if seen < 3 {
		t.Errorf("%d rounds", seen)
	}
	golden.Equal(t, "testdata/timeline.golden", b.String())
	if !strings.Contains(b.String(), "\n\nTurn Context (split turn)\n") || !strings.Contains(b.String(), `"split_turn_id"`) {
		t.Error("no turn was split") // C6
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// TestTimelineLimits: 800 and 400 tokens hold whatever the model writes, with a
// model and by rule. C7
func TestTimelineLimits(t *testing.T) {
	var messages []thread.Message
	for n := range 40 {
		messages = append(messages, oneTurn(n)...)
	}
	th := threadOf(t, messages[:len(messages)-3]...) // the last turn goes on
	long := strings.Repeat("many words that never end ", 2000)
	for _, model := range []llm.Generator{nil, llmtest.Script(llmtest.Say(long), llmtest.Say(long), llmtest.Say(long), llmtest.Say(long))} {
		s := stateOf(t, th, nil)
		s.Budget = 10_000
		f, err := policy.Timeline{Model: model, KeepRecent: 150}.Plan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		r := f.Plan.Summarizations[0].Range
		text, context := s.Counter.Text(r.Text), s.Counter.Text(r.TurnContext)
		if text > 800 || text < 300 || context > 400 || context < 50 || f.Tokens > 9000 {
			t.Errorf("%d, %d tokens, %d in all", text, context, f.Tokens)
		}
		if len(r.CoveredTurns) != 39 || r.SplitTurn != "turn_40" || r.Path != "su:turn_40.conv.range.summary" {
			t.Errorf("%v %s %s", r.CoveredTurns, r.SplitTurn, r.Path)
		}
		if len(r.Digest.Tools["Read"]) < 70 || len(r.Digest.Searches) != 39+1 || len(r.Digest.Searches[0].Paths) != 2 || r.Digest.Searches[0].Query != "parser bugs" {
			t.Errorf("digest: %d reads, %v", len(r.Digest.Tools["Read"]), r.Digest.Searches) // C10
		}
	}
}

// TestTimelineFailures: with every failure of the model the ceiling holds, and
// the loop goes on.
func TestTimelineFailures(t *testing.T) {
	turns := []llmtest.Turn{llmtest.Say(""), llmtest.Say(" \n"), {Reply: llm.Reply{Text: "cut", Stop: wire.StopLength}}, {Reply: llm.Reply{Stop: wire.StopRefusal}}}
	for _, kind := range []error{llm.ErrOverflow, llm.ErrRateLimited, llm.ErrOverloaded, llm.ErrServer, llm.ErrTimeout, llm.ErrConnection, llm.ErrResponse,
		llm.ErrAuth, llm.ErrQuota, llm.ErrInvalid, llm.ErrNotFound, llm.ErrRefused, llm.ErrTruncated} {
		turns = append(turns, llmtest.Fail(kind))
	}
	messages := slices.Concat(oneTurn(1), oneTurn(2), oneTurn(3))
	for _, turn := range turns {
		model := llmtest.Script(turn)
		l := smallTimeline
		l.Model = model
		c, err := palimpsest.New(palimpsest.Config{Policy: l, Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		th := c.Session("t")
		p, err := th.PrepareStep(t.Context(), palimpsest.Step{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if len(model.Asked()) == 0 || len(p.Messages) >= len(messages) || !strings.HasPrefix(p.Messages[0].Text(), "[conv.range.summary su:turn_3.conv.range.summary]\n[Summary v") {
			t.Errorf("%v: %d requests, %d messages, %s", turn.Err, len(model.Asked()), len(p.Messages), p.Messages[0].Text())
		}
		// Forced after a refusal of the provider, until nothing is left to give. C2
		for last := len(p.Messages); ; {
			if p, err = th.Overflowed(t.Context(), p, nil); err != nil {
				break
			}
			if len(p.Messages) >= last {
				t.Fatalf("%d messages after %d", len(p.Messages), last)
			}
			last = len(p.Messages)
		}
		if !errors.Is(err, palimpsest.ErrNoRoom) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := stateOf(t, threadOf(t, messages...), nil)
	s.Forced = true
	if _, err := smallTimeline.Plan(ctx, s); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.Forced, s.PromptTokens = false, 10
	if _, err := (policy.Timeline{MaxTokens: 1 << 20}).Plan(t.Context(), s); !errors.Is(err, policy.ErrNothing) {
		t.Error("under the limit:", err)
	}
}

// TestTimelineCachePoints: the end of the turn before, the end of round N−4, the
// tail; the second only with enough rounds. C9. The tail comes first, where there are few.
func TestTimelineCachePoints(t *testing.T) {
	turns := func(n int) *thread.Thread {
		var messages []thread.Message
		for i := range n {
			messages = append(messages, speak(thread.User, fmt.Sprintf("ask %d", i)), callTool(fmt.Sprint(i), "Read", "{}", ""), answerTool(fmt.Sprint(i), "Read", "x"))
		}
		return threadOf(t, messages...)
	}
	for _, c := range []struct {
		turns, offset, min, points int
		want                       []int
	}{
		{5, 4, 5, 4, []int{14, 11, 2}}, // the seed's diagram: A, D, E
		{6, 4, 5, 4, []int{17, 14, 5}},
		{4, 4, 5, 4, []int{11, 8}},
		{6, 4, 7, 4, []int{17, 14}},
		{1, 4, 5, 4, []int{2}},
		{5, 4, 5, 2, []int{14, 11}},
		{5, 4, 5, 1, []int{14}},
		{5, 1, 0, 4, []int{14, 11}}, // both behind the same block
	} {
		th := turns(c.turns)
		p := &plan.Plan{ThreadID: "t", ThreadVersion: th.Version(), Cache: &plan.CacheRule{Offset: c.offset, MinRounds: c.min}}
		p.Add(plan.Clearing{Span: th.Range(2, 3)})
		out, _, err := render.Render(th, p, nil, &render.Options{Profile: render.Profile{CachePoints: c.points}})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, point := range out.CachePoints {
			got = append(got, point.After)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestTimelineProperty: over random threads a plan holds, is smaller than what
// was there, and carries the earlier summary on. C5, C8
func TestTimelineProperty(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		var current *plan.Plan
		covered := 0
		for n := range 3 {
			now := th.Prefix(th.Len() * (n + 1) / 3)
			if current != nil && current.Validate(now) != nil {
				current, covered = nil, 0 // a result came late: the front door begins anew then
			}
			s := stateOf(t, now, current)
			s.Forced = true
			f, err := smallTimeline.Plan(t.Context(), s)
			if errors.Is(err, policy.ErrNothing) {
				continue
			}
			if err != nil {
				rt.Fatal(err)
			}
			if err := f.Plan.Validate(now); err != nil {
				rt.Fatal(err)
			}
			if f.Tokens >= s.PromptTokens {
				rt.Fatalf("%d tokens after %d", f.Tokens, s.PromptTokens)
			}
			current = f.Plan
			if got := current.Summarizations[0].Span.Len(); got < covered {
				rt.Fatalf("%d messages covered after %d", got, covered)
			} else {
				covered = got
			}
		}
	})
}

// TestCachePointsFromTheFirst: the rule for cache points holds in normal rendering
// too: in requests before the first compaction, and in those after. C9
func TestCachePointsFromTheFirst(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Timeline{MaxTokens: 1 << 20}, Now: fixedNow})
	if err != nil {
		t.Fatal(err)
	}
	th := c.Session("t")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic)}
	var got [][]int
	for n := range 6 {
		step.Messages = []thread.Message{speak(thread.User, fmt.Sprintf("Part %d, please.", n))}
		p, err := th.PrepareStep(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		var points []int
		for _, point := range p.CachePoints {
			points = append(points, point.After)
		}
		got = append(got, points)
		if err := th.FinishStep(t.Context(), nil, wire.Usage{}, speak(thread.Assistant, fmt.Sprintf("Part %d is done.", n))); err != nil {
			t.Fatal(err)
		}
	}
	// The tail, the turn before, round N-4 (from the fifth round on).
	if diff := cmp.Diff([][]int{{0}, {2, 1}, {4, 3}, {6, 5}, {8, 7, 1}, {10, 9, 3}}, got); diff != "" {
		t.Errorf("cache points (-want +got):\n%s", diff)
	}
}

// TestTimelineByRule: without a model a round takes over the items of the rounds before, and a turn that is cut
// again is told from its beginning. C6
func TestTimelineByRule(t *testing.T) {
	var log []thread.Message
	var current *plan.Plan
	compact := func() *plan.Range {
		s := stateOf(t, threadOf(t, log...), current)
		s.Forced, s.Round = true, len(log)
		f, err := policy.Timeline{KeepRecent: 40}.Plan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		current = f.Plan
		return current.Summarizations[0].Range
	}
	says := func(words string) {
		id := fmt.Sprintf("c%d", len(log))
		log = append(log, speak(thread.Assistant, words), callTool(id, "Read", fmt.Sprintf(`{"file_path":"/r/shelf%d.go"}`, len(log)), ""), answerTool(id, "Read", "package shelf\n\nfunc Shelf() {}\n"+strings.Repeat("// A line of the file.\n", 40)))
	}
	log = append(log, speak(thread.User, "Find out why the parcels of Leeds are lost."))
	says("The parcels are lost in sorter.go, since its belt 88 is read as signed.")
	for n := range 6 {
		log = append(log, speak(thread.User, fmt.Sprintf("Then look at shelf %d, please, and say what stands there.", n)))
		for k := range 3 {
			says(fmt.Sprintf("On shelf %d.%d there stand the jars of %s, in rows of %d.", n, k, strings.Repeat("plum and cherry and ", 3), n+k))
		}
		if r := compact(); !strings.Contains(r.Text+r.TurnContext, "belt 88") {
			t.Errorf("round %d: what was found first is gone from\n%s", n, r.Text)
		}
	}
	log = append(log, speak(thread.User, "Now repaint the whole hall."))
	walls := []string{
		"The north wall is cracked, I filled it with lime before the paint.", "Behind the oven the plaster is wet, so nothing holds there yet.", "The door frame gets linseed oil, not paint.",
		"Under the windows somebody has glued paper, which I scraped off.", "The ceiling lamp must go down for the second coat.", "In the corner at the stairs mould came back twice.", "The skirting is oak, I leave it as it is.",
	}
	for n, wall := range walls {
		says(wall)
		if r := compact(); n > 2 && (r.SplitTurn == "" || !strings.Contains(r.TurnContext, "filled it with lime") || !strings.Contains(r.TurnContext, "plaster is wet")) {
			t.Errorf("wall %d: the beginning of the turn is gone from\n%s", n, r.TurnContext)
		}
	}
}

// TestTimelineShortRequest: where the turn that is cut holds only a few words of the user's before the cut, which are
// no matter for a summary by rule, they stand in its place. C6, F1
func TestTimelineShortRequest(t *testing.T) {
	var log []thread.Message
	for n := range 8 {
		log = append(log, speak(thread.User, fmt.Sprintf("Look at shelf %d.", n)), speak(thread.Assistant, strings.Repeat(fmt.Sprintf("On shelf %d there are jars. ", n), 40)))
	}
	log = append(log, speak(thread.User, "Write the last report now, please, and name the weights of all jars that you saw in grams and the shelves on which they stood."), speak(thread.Assistant, "The report:"))
	s := stateOf(t, threadOf(t, log...), nil)
	s.Forced = true
	f, err := policy.Timeline{KeepRecent: 1}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Plan.Summarizations[0].Range; r.SplitTurn == "" || !strings.Contains(r.TurnContext, "Write the last report now, please, and name the weights of all jars that you saw in grams and the shelves on which they stood.") || !strings.Contains(r.Text, "Look at shelf 0.") {
		t.Errorf("split %q: %s\n\n%s", r.SplitTurn, r.Text, r.TurnContext)
	}
}

// TestTimelineCoversNoTurn: where only a part of a turn is summarized, the list of turns is
// empty, for readers in any language. C7
func TestTimelineCoversNoTurn(t *testing.T) {
	c, err := palimpsest.New(palimpsest.Config{Policy: policy.Timeline{MaxTokens: 2_000}})
	if err != nil {
		t.Fatal(err)
	}
	log := []thread.Message{say(thread.User, "Read them all.")}
	for i := range 20 {
		log = append(log, call(i, "", "Read", `{}`), toolResult(i, "Read", strings.Repeat("a line ", 60)))
	}
	th := c.Session("t")
	if _, err := th.PrepareStep(t.Context(), palimpsest.Step{Messages: log}); err != nil {
		t.Fatal(err)
	}
	made, err := th.Plans(t.Context())
	if err != nil || len(made) == 0 {
		t.Fatal(made, err)
	}
	data, err := json.Marshal(made[0])
	if err != nil || !strings.Contains(string(data), `"covered_turn_ids":[],"split_turn_id":"turn_1"`) {
		t.Errorf("%s, %v", data, err)
	}
}
