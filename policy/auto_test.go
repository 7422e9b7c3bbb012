package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/cost"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// buildLog is a long output with one line that matters in its middle.
func buildLog(lines int) string {
	var b strings.Builder
	for n := range lines {
		fmt.Fprintf(&b, "[%05d] compiled package number %d of the shop in %d ms\n", n, n, n*7%913)
		if n == lines/2 {
			b.WriteString("ledger/post.go:88:14: error: undefined: roundHalfEven\n")
		}
	}
	return b.String() + "done, 1 package did not build\n"
}

func thinking(m thread.Message) thread.Message {
	m.Parts = append([]thread.Part{thread.Reasoning{
		Text: "I look first.", Signature: "c2ln", Source: thread.Source{API: wire.Anthropic, Raw: `{"type":"thinking","thinking":"I look first.","signature":"c2ln"}`},
	}}, m.Parts...)
	return m
}

func hasReasoning(m *thread.Message) bool {
	for _, p := range m.Parts {
		if _, ok := p.(thread.Reasoning); ok {
			return true
		}
	}
	return false
}

// TestIntake: what arrives too large is put aside before a model has seen it,
// with its beginning, its failures and its end in its place; nothing else
// changes, not even what a provider bound to the text before it.
func TestIntake(t *testing.T) {
	messages := []thread.Message{
		speak(thread.User, "Build the shop."),
		thinking(callTool("c1", "Bash", `{"command":"make all"}`, "I build it.")),
		answerTool("c1", "Bash", buildLog(4_000)),
	}
	th := threadOf(t, messages...)
	state := func(th *thread.Thread, current *plan.Plan) *policy.State {
		s := stateOf(t, th, current)
		s.Window, s.Reachable, s.Profile = 200_000, true, render.For(wire.Anthropic)
		return s
	}
	s := state(th, nil)
	due, why := policy.Auto{}.Due(s)
	if !due || !strings.Contains(why, "20000 tokens") {
		t.Fatalf("due %v: %s", due, why)
	}
	f, err := policy.Auto{}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Plan.Externalizations) != 1 || f.Plan.Rewritten() != 0 {
		t.Fatalf("%+v", f.Plan)
	}
	r, _ := f.Prompt.Messages[2].Result()
	for _, want := range []string{"[00000] compiled", "error: undefined: roundHalfEven", "1 package did not build", "read_artifact(\"art_", "characters left out"} {
		if !strings.Contains(r.Text(), want) {
			t.Errorf("what stays does not hold %q:\n%s", want, r.Text())
		}
	}
	if f.Sizes[2] > 3_000 {
		t.Errorf("%d tokens stay", f.Sizes[2])
	}
	if !hasReasoning(&f.Prompt.Messages[1]) {
		t.Error("the reasoning before it is gone")
	}

	// The next steps go on under the plan, and a second large result adds to it.
	th, err = th.Append(
		thinking(callTool("c2", "Bash", `{"command":"make shop"}`, "Again.")), answerTool("c2", "Bash", "ok\n"),
		thinking(callTool("c3", "Bash", `{"command":"make all"}`, "All.")), answerTool("c3", "Bash", buildLog(5_000)),
	)
	if err != nil {
		t.Fatal(err)
	}
	before := f.Prompt.Messages
	f, err = policy.Auto{}.Plan(t.Context(), state(th, f.Plan))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Plan.Validate(th); err != nil {
		t.Error(err)
	}
	if len(f.Plan.Externalizations) != 2 || f.Plan.Rewritten() != 0 {
		t.Errorf("%d results are put aside, %d messages rewritten", len(f.Plan.Externalizations), f.Plan.Rewritten())
	}
	for n, m := range before {
		got, _ := m.Result()
		want, _ := f.Prompt.Messages[n].Result()
		if m.Text() != f.Prompt.Messages[n].Text() || got.Text() != want.Text() {
			t.Errorf("message %d of the prompt has changed", n)
		}
	}
	for _, n := range []int{1, 3, 5} {
		if !hasReasoning(&f.Prompt.Messages[n]) {
			t.Errorf("the reasoning of message %d is gone", n)
		}
	}
}

// TestNoIntake: nothing is put aside that the agent could not read again, that it
// has just read back, or that a model has seen.
func TestNoIntake(t *testing.T) {
	large := buildLog(4_000)
	for name, test := range map[string]struct {
		messages  []thread.Message
		reachable bool
		policy    policy.Auto
	}{
		"out of reach":  {[]thread.Message{callTool("c", "Bash", `{}`, "x"), answerTool("c", "Bash", large)}, false, policy.Auto{}},
		"read back":     {[]thread.Message{callTool("c", "read_artifact", `{}`, "x"), answerTool("c", "read_artifact", large)}, true, policy.Auto{}},
		"seen":          {[]thread.Message{callTool("c", "Bash", `{}`, "x"), answerTool("c", "Bash", large), speak(thread.Assistant, "Hm.")}, true, policy.Auto{}},
		"switched off":  {[]thread.Message{callTool("c", "Bash", `{}`, "x"), answerTool("c", "Bash", large)}, true, policy.Auto{Intake: -1}},
		"not so large":  {[]thread.Message{callTool("c", "Bash", `{}`, "x"), answerTool("c", "Bash", buildLog(500))}, true, policy.Auto{}},
		"user's speech": {[]thread.Message{speak(thread.User, large)}, true, policy.Auto{}},
	} {
		s := stateOf(t, threadOf(t, append([]thread.Message{speak(thread.User, "Build.")}, test.messages...)...), nil)
		s.Window, s.Reachable = 400_000, test.reachable
		if due, why := test.policy.Due(s); due {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// TestPricesDecide: with prices, the thread is compacted where going on costs more
// than a compaction, and at once when the cache is cold; without them only at the
// hard mark.
func TestPricesDecide(t *testing.T) {
	var messages []thread.Message
	messages = append(messages, speak(thread.User, "Read everything."))
	dueAt := func(change func(*policy.State)) int {
		var th *thread.Thread
		for n := range 300 {
			id := fmt.Sprintf("c%d", n)
			if th == nil {
				th = threadOf(t, messages...)
			}
			next, err := th.Append(callTool(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, n), "Next."), answerTool(id, "Read", buildLog(25)))
			if err != nil {
				t.Fatal(err)
			}
			th = next
			if n%5 != 0 {
				continue // counting every step of every case would take long
			}
			s := stateOf(t, th, nil)
			s.Window = 120_000
			change(s)
			due, _ := policy.Auto{}.Due(s)
			if !due {
				continue
			}
			f, err := policy.Auto{}.Plan(t.Context(), withSummarizer(s))
			if err != nil {
				t.Fatal(err)
			}
			if f.Tokens > 60_000 || s.Rates.Read > 0 && f.Tokens > 20_000+s.Fixed {
				t.Errorf("%d tokens are left", f.Tokens)
			}
			return s.Prompt
		}
		t.Fatal("never due")
		return 0
	}
	without := dueAt(func(*policy.State) {})
	with := dueAt(func(s *policy.State) { s.Rates = cost.Usual() })
	cold := dueAt(func(s *policy.State) { s.Rates, s.Cold = cost.Usual(), true })
	if without < 108_000 || without > 115_000 {
		t.Errorf("without prices it is due at %d tokens", without)
	}
	// 20,000 after, about 600 a step: the law says about 38,000.
	if with < 36_000 || with > 50_000 {
		t.Errorf("with prices it is due at %d tokens", with)
	}
	if cold < 21_000 || cold > 25_000 {
		t.Errorf("on a cold cache it is due at %d tokens", cold)
	}
}

// TestBurst: that the first steps read much is no sign that all the others will,
// so the mark stands nearly where it does when little is read.
func TestBurst(t *testing.T) {
	due := func(lines, steps int) bool {
		messages := []thread.Message{speak(thread.User, "Read everything.")}
		for n := range steps {
			id := fmt.Sprintf("c%d", n)
			messages = append(messages, callTool(id, "Read", "{}", "Next."), answerTool(id, "Read", buildLog(lines)))
		}
		s := stateOf(t, threadOf(t, messages...), nil)
		s.Window, s.Rates = 200_000, cost.Usual()
		yes, _ := policy.Auto{}.Due(s)
		if lines > 100 && (s.Prompt < 45_000 || s.Prompt > 60_000) {
			t.Fatalf("the burst is %d tokens", s.Prompt)
		}
		return yes
	}
	// The plain mean of 10,000 a step would put the mark at 85,000.
	if !due(600, 5) {
		t.Error("five large steps are not compacted")
	}
	if due(25, 40) {
		t.Error("forty small steps are compacted")
	}
}

// TestWhatIsNew: what a step brings is written in any case, so that a step that
// brings much compacts sooner; where the cache often lapses by itself, waiting
// pays. 20,000 stay, and after 40 steps of 578 tokens the growth is taken to be
// 531: with 221 tokens new, sqrt(2·1.15·19,776/(0.1·531)) is 29.3 steps, so the mark
// is 35,500; with 6,851 new it is 32,800, and with a lapse in every tenth step
// 48,000.
func TestWhatIsNew(t *testing.T) {
	due := func(lines int, lapse float64, around int) bool {
		messages := []thread.Message{speak(thread.User, "Read everything.")}
		for n := range 40 {
			id := fmt.Sprintf("c%d", n)
			messages = append(messages, callTool(id, "Read", "{}", "Next."), answerTool(id, "Read", buildLog(31)))
		}
		messages = append(messages, callTool("last", "Read", "{}", "Next."), answerTool("last", "Read", buildLog(lines)))
		s := stateOf(t, threadOf(t, messages...), nil)
		s.Window, s.Rates, s.Lapse = 200_000, cost.Usual(), lapse
		s.Prompt = around
		yes, _ := policy.Auto{}.Due(s)
		return yes
	}
	for _, test := range []struct {
		lines, prompt int
		lapse         float64
		want          bool
	}{
		{10, 35_400, 0, false}, {10, 35_700, 0, true},
		{400, 32_700, 0, false}, {400, 33_000, 0, true},
		{10, 47_900, 0.1, false}, {10, 48_200, 0.1, true},
	} {
		if got := due(test.lines, test.lapse, test.prompt); got != test.want {
			t.Errorf("%+v: due %v", test, got)
		}
	}
}

// TestPricesNeverForbid: where the user said more than prices would leave, it
// stays all the same.
func TestPricesNeverForbid(t *testing.T) {
	s := stateOf(t, threadOf(t,
		speak(thread.User, "Keep to this list: "+buildLog(1_500)), callTool("c", "Read", `{}`, "x"), answerTool("c", "Read", buildLog(4_000)), speak(thread.Assistant, "Done."),
		speak(thread.User, "And this one: "+buildLog(1_500)),
	), nil)
	s.Window, s.Rates, s.Cold = 200_000, cost.Usual(), true
	if due, _ := (policy.Auto{}).Due(s); !due {
		t.Fatal("not due")
	}
	f, err := policy.Auto{}.Plan(t.Context(), withSummarizer(s))
	if err != nil {
		t.Fatal(err)
	}
	if f.Tokens > 100_000 {
		t.Errorf("%d tokens are left", f.Tokens)
	}
	for _, m := range []int{0, 4} {
		if words := s.Thread.At(m).Text(); !slices.ContainsFunc(f.Prompt.Messages, func(shown thread.Message) bool { return shown.Text() == words }) {
			t.Errorf("what the user said in message %d is not as it was", m)
		}
	}
}

func withSummarizer(s *policy.State) *policy.State {
	s.Summarizer = &summarize.Extractive{Counter: s.Counter.Text}
	s.Tools = toolpolicy.New(nil)
	return s
}

// TestLargeFixedParts: where system and tools alone are more than the target, the
// rest is compacted to what fits below the hard mark, and not left as it is.
func TestLargeFixedParts(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "Read everything.")}
	for n := range 30 {
		id := fmt.Sprintf("c%d", n)
		messages = append(messages, callTool(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, n), "Next."), answerTool(id, "Read", buildLog(30)))
	}
	s := withSummarizer(stateOf(t, threadOf(t, messages...), nil))
	s.Base = &prompt.Prompt{System: []prompt.System{{Text: buildLog(1_200)}}}
	s.Fixed = s.Counter.Prompt(s.Base)
	s.Prompt += s.Fixed
	s.Budget = s.Fixed * 3 / 2
	if due, _ := (policy.Auto{}).Due(s); !due || s.Fixed <= s.Budget/2 {
		t.Fatalf("due %v with %d of %d fixed", due, s.Fixed, s.Budget)
	}
	f, err := policy.Auto{}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if f.Tokens > s.Budget*9/10 {
		t.Errorf("%d tokens of %d are left", f.Tokens, s.Budget)
	}
}
