package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/toolpolicy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
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

// TestUnseen: what the model has asked for and not seen yet stays whole while the
// request fits what it can read, however small the target; what cannot fit is externalized
// as it arrives, with its beginning, its failures and its end in its place,
// and nothing else changes, not even what a provider bound to the text before it. F4
func TestUnseen(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "Build the shop.")}
	for n := range 20 {
		id := fmt.Sprint("c", n)
		messages = append(messages, thinking(callTool(id, "Bash", fmt.Sprintf(`{"command":"make part%d"}`, n), "A part.")), answerTool(id, "Bash", buildLog(150)))
	}
	messages = append(messages, thinking(callTool("last", "Bash", `{"command":"make all"}`, "All of it.")), answerTool("last", "Bash", buildLog(4_000)))
	th := threadOf(t, messages...)
	situation := func(window int) *policy.Situation {
		s := stateOf(t, th, nil)
		s.Window, s.Profile = window, render.For(wire.Anthropic)
		s.Summarizer, s.Tools = &summarize.Extractive{Counter: s.Counter.Text}, toolpolicy.New(nil)
		return s
	}
	whole, _ := messages[len(messages)-1].Result()
	last := func(f *policy.Fitted) string {
		r, _ := f.Prompt.Messages[len(f.Prompt.Messages)-1].Result()
		return r.Text()
	}

	s := situation(135_000)
	if due, why := (policy.Auto{}).Due(s); !due {
		t.Fatalf("%d tokens are not due: %s", s.PromptTokens, why)
	}
	f, err := policy.Auto{}.Plan(t.Context(), s)
	if err != nil || last(f) != whole.Text() || len(f.Plan.Summarizations) == 0 {
		t.Errorf("%v: the result of the last step is not whole, or nothing else went", err)
	}

	f, err = policy.Auto{}.Plan(t.Context(), situation(60_000))
	if err != nil {
		t.Fatal(err)
	}
	text := last(f)
	for _, want := range []string{"[00000] compiled", "error: undefined: roundHalfEven", "1 package did not build", "read_artifact(\"art_", "characters left out"} {
		if !strings.Contains(text, want) {
			t.Errorf("what stays does not hold %q:\n%s", want, text)
		}
	}
	if f.Tokens > 60_000 {
		t.Errorf("%d tokens", f.Tokens)
	}
}

// TestPricesDecide: in favor of cost, with prices, the thread is compacted where going on costs more
// than a compaction, and at once when the cache is cold; without them only at the
// hard mark.
func TestPricesDecide(t *testing.T) {
	var messages []thread.Message
	messages = append(messages, speak(thread.User, "Read everything."))
	dueAt := func(change func(*policy.Situation)) int {
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
			due, _ := policy.Auto{Favor: policy.FavorCost}.Due(s)
			if !due {
				continue
			}
			f, err := policy.Auto{Favor: policy.FavorCost}.Plan(t.Context(), withSummarizer(s))
			if err != nil {
				t.Fatal(err)
			}
			if f.Tokens > 60_000 || s.Rates.Read > 0 && f.Tokens > 20_000+s.Fixed {
				t.Errorf("%d tokens are left", f.Tokens)
			}
			return s.PromptTokens
		}
		t.Fatal("never due")
		return 0
	}
	without := dueAt(func(*policy.Situation) {})
	with := dueAt(func(s *policy.Situation) { s.Rates = token.UsualRates() })
	cold := dueAt(func(s *policy.Situation) { s.Rates, s.CacheExpired = token.UsualRates(), true })
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
		s.Window, s.Rates = 200_000, token.UsualRates()
		yes, _ := policy.Auto{Favor: policy.FavorCost}.Due(s)
		if lines > 100 && (s.PromptTokens < 45_000 || s.PromptTokens > 60_000) {
			t.Fatalf("the burst is %d tokens", s.PromptTokens)
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

// TestLargeSteps: where steps are large for the room, a compaction leaves room for six of them, and no
// price has it sooner; two fifths of the room stay in any case. What stays otherwise is half of it.
func TestLargeSteps(t *testing.T) {
	const room, fixed = 28_000, 16_000
	for _, c := range []struct {
		name         string
		lines        int // of each step's result, at about 21 tokens
		least, most  int // steps from the target to the mark
		lower, upper float64
	}{
		{"small", 20, 20, 40, 0.5, 0.5},
		{"large", 122, 6, 7, 0.4, 0.46},
		{"too large", 180, 3, 4, 0.4, 0.4},
	} {
		t.Run(c.name, func(t *testing.T) {
			messages := []thread.Message{speak(thread.User, "Read everything.")}
			for n := range 20 {
				id := fmt.Sprintf("c%d", n)
				messages = append(messages, callTool(id, "Read", "{}", "Next."), answerTool(id, "Read", buildLog(c.lines)))
			}
			s := stateOf(t, threadOf(t, messages...), nil)
			s.Budget, s.Fixed, s.Rates = fixed+room, fixed, token.UsualRates()
			m, step := policy.Auto{}.Marks(s), s.PlainSizes[1]+s.PlainSizes[2]
			if kept := float64(m.Target-fixed) / room; kept < c.lower-0.001 || kept > c.upper+0.001 {
				t.Errorf("%.3f of the room stays, want %.2f to %.2f", kept, c.lower, c.upper)
			}
			if apart := (m.Mark - m.Target + step/20) / step; apart < c.least || apart > c.most {
				t.Errorf("%d steps of %d lead from %d to %d, want %d to %d", apart, step, m.Target, m.Mark, c.least, c.most)
			}
			for _, target := range []float64{0.5, 0.7} { // what somebody has set stays
				set := policy.Auto{Favor: policy.FavorQuality, Hard: 0.9, Target: target}
				for _, a := range []policy.Auto{set, set.Defaults()} {
					if got, want := a.Marks(s).Target, s.ShareOfMessages(s.Limit(), target); got != want {
						t.Errorf("the target %v that was set is %d, want %d", target, got, want)
					}
				}
			}
		})
	}
}

// TestWhatIsNew: what a step brings is written in any case, so that a step that
// brings much compacts sooner; where the cache often expires by itself, waiting
// pays. 20,000 stay, and after 40 steps of 578 tokens the growth is taken to be
// 531: with 221 tokens new, sqrt(2·1.15·19,776/(0.1·531)) is 29.3 steps, so the mark
// is 35,500; with 6,851 new it is 32,800, and with an expiry in every tenth step
// 48,000.
func TestWhatIsNew(t *testing.T) {
	due := func(lines int, expiry float64, around int) bool {
		messages := []thread.Message{speak(thread.User, "Read everything.")}
		for n := range 40 {
			id := fmt.Sprintf("c%d", n)
			messages = append(messages, callTool(id, "Read", "{}", "Next."), answerTool(id, "Read", buildLog(31)))
		}
		messages = append(messages, callTool("last", "Read", "{}", "Next."), answerTool("last", "Read", buildLog(lines)))
		s := stateOf(t, threadOf(t, messages...), nil)
		s.Window, s.Rates, s.ExpiryChance = 200_000, token.UsualRates(), expiry
		s.PromptTokens = around
		yes, _ := policy.Auto{Favor: policy.FavorCost}.Due(s)
		return yes
	}
	for _, test := range []struct {
		lines, prompt int
		expiry        float64
		want          bool
	}{
		{10, 35_400, 0, false}, {10, 35_700, 0, true},
		{400, 32_700, 0, false}, {400, 33_000, 0, true},
		{10, 47_900, 0.1, false}, {10, 48_200, 0.1, true},
	} {
		if got := due(test.lines, test.expiry, test.prompt); got != test.want {
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
	s.Window, s.Rates, s.CacheExpired = 200_000, token.UsualRates(), true
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

func withSummarizer(s *policy.Situation) *policy.Situation {
	s.Summarizer = &summarize.Extractive{Counter: s.Counter.Text}
	s.Tools = toolpolicy.New(nil)
	return s
}

// TestRefusedInALargeWindow: a request that the provider refused is made smaller, however
// large the window of the model was thought to be.
func TestRefusedInALargeWindow(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "Read everything.")}
	for n := range 30 {
		id := fmt.Sprintf("c%d", n)
		messages = append(messages, callTool(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, n), "Next."), answerTool(id, "Read", buildLog(30)))
	}
	s := withSummarizer(stateOf(t, threadOf(t, messages...), nil))
	s.Window, s.Budget, s.Forced = 1_000_000, 0, true
	for s.Refusals = 1; s.Refusals < 4; s.Refusals++ {
		f, err := policy.Auto{}.Plan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if f.Tokens >= s.PromptTokens*3/4 {
			t.Errorf("refused %d times: %d tokens of %d are left", s.Refusals, f.Tokens, s.PromptTokens)
		}
	}
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
	s.PromptTokens += s.Fixed
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
