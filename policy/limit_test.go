package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestLimits: the largest request that each policy allows, by its own formula,
// alone, with the step's window, and with the step's budget. F6, F8
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		policy                 policy.Bounded
		window, output, budget int
		want                   int
	}{
		{"ladder, the seed's", policy.Ladder{}, 0, 0, 0, 100_000},
		{"ladder", policy.Ladder{MaxInputTokens: 60_000}, 200_000, 8_000, 0, 60_000},
		{"ladder with a budget", policy.Ladder{MaxInputTokens: 60_000}, 0, 0, 32_000, 32_000},
		{"ladder with a budget beyond it", policy.Ladder{}, 0, 0, 150_000, 100_000},
		{"ladder in a window", policy.Ladder{}, 32_000, 4_000, 0, 28_000},
		{"ladder of more than the window", policy.Ladder{MaxInputTokens: 60_000}, 32_000, 4_000, 0, 28_000},
		{"ladder in a window, with a budget", policy.Ladder{}, 32_000, 4_000, 20_000, 20_000},
		{"ladder, written out, with a budget beyond it", policy.Ladder{}.Defaults(), 0, 0, 150_000, 100_000},
		{"session, the seed's", policy.Session{}, 0, 0, 0, 124_000},
		{"session", policy.Session{ContextLimit: 64_000, OutputReserve: 1_000}, 0, 0, 0, 63_000},
		{"session in a window", policy.Session{}, 200_000, 8_000, 0, 196_000},
		{"session with a budget", policy.Session{}, 200_000, 8_000, 32_000, 32_000},
		{"session in a window of nothing", policy.Session{}, 3_000, 0, 0, 0},
		{"timeline, not told", policy.Timeline{}, 0, 0, 0, 0},
		{"timeline in a window", policy.Timeline{}, 200_000, 8_000, 0, 192_000},
		{"timeline", policy.Timeline{MaxTokens: 50_000}, 200_000, 8_000, 0, 50_000},
		{"workstream, the seed's", policy.Workstream{}, 0, 0, 0, 160_000},
		{"workstream", policy.Workstream{ContextSize: 100_000, OutputReserve: 10_000, SafetyMargin: 5_000}, 200_000, 0, 0, 85_000},
		{"workstream with a budget", policy.Workstream{}, 0, 0, 32_000, 32_000},
		{"workstream in a small window", policy.Workstream{}, 20_000, 0, 0, 14_000},
		{"loop, the seed's", policy.Loop{}, 0, 0, 0, 183_616},
		{"loop", policy.Loop{ContextLimit: 100_000, MaxOutput: 10_000}, 200_000, 0, 0, 90_000},
		{"loop with a budget", policy.Loop{}, 200_000, 8_000, 32_000, 32_000},
	} {
		s := &policy.Situation{Base: &prompt.Prompt{}, Window: tt.window, Output: tt.output, Budget: tt.budget}
		if got := tt.policy.Limit(s); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestLimitIsTheSmaller: a budget beyond the window does not switch the window off.
func TestLimitIsTheSmaller(t *testing.T) {
	for _, tt := range []struct{ window, output, budget, want int }{
		{0, 0, 0, 0},
		{128_000, 16_000, 0, 112_000},
		{0, 0, 50_000, 50_000},
		{128_000, 16_000, 50_000, 50_000},
		{128_000, 16_000, 200_000, 112_000},
	} {
		s := policy.Situation{Window: tt.window, Output: tt.output, Budget: tt.budget}
		if got := s.Limit(); got != tt.want {
			t.Errorf("%+v: %d", tt, got)
		}
	}
}

// TestLadderReserves: what is kept free is not there for messages, and is what
// may be brought back. A12
func TestLadderReserves(t *testing.T) {
	for _, tt := range []struct {
		name              string
		ladder            policy.Ladder
		tokens, artifacts int
		room              int // what messages may take
	}{
		{"the seed's", policy.Ladder{}, 2_000, 3, 82_500},
		{"other figures", policy.Ladder{SafetyBuffer: 100, RehydrationReserve: 900, MaxRehydrated: 1}, 900, 1, 84_000},
		{"none", policy.Ladder{SafetyBuffer: -1, RehydrationReserve: -1, MaxRehydrated: -1}, 0, 0, 85_000},
	} {
		at := func(messages int) *policy.Situation {
			return &policy.Situation{Base: &prompt.Prompt{}, MessageTokens: messages}
		}
		tokens, artifacts := tt.ladder.Reserve(at(0))
		if tokens != tt.tokens || artifacts != tt.artifacts {
			t.Errorf("%s: %d tokens and %d artifacts, want %d and %d", tt.name, tokens, artifacts, tt.tokens, tt.artifacts)
		}
		before, _ := tt.ladder.Due(at(tt.room))
		if after, _ := tt.ladder.Due(at(tt.room + 1)); before || !after {
			t.Errorf("%s: due at %d: %v, at one more: %v", tt.name, tt.room, before, after)
		}
	}
}

// TestLadderInAWindow: a model whose window is smaller than the largest request of the
// policy gets its compaction before it refuses, and after a refusal a request that is at
// least a quarter smaller, however little the reserves leave. A12
func TestLadderInAWindow(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "Please repair the shop.")}
	for n := range 400 {
		messages = append(messages, speak(thread.Assistant, fmt.Sprintf("Shelf %d: ", n)+strings.Repeat("it is repaired and painted. ", 12)), speak(thread.User, "Go on."))
	}
	at := func(window, output int, forced bool) *policy.Situation {
		s := stateOf(t, threadOf(t, messages...), nil)
		s.Window, s.Output, s.Forced, s.Summarizer = window, output, forced, &summarize.Extractive{Counter: s.Counter.Text}
		return s
	}
	s := at(32_000, 4_000, false)
	if s.PromptTokens < 32_000 || s.PromptTokens > 82_500 {
		t.Fatalf("%d tokens show nothing", s.PromptTokens)
	}
	if due, _ := (policy.Ladder{}).Due(s); !due {
		t.Errorf("%d tokens are not due in a window of 32,000", s.PromptTokens)
	}
	if f, err := (policy.Ladder{}).Plan(t.Context(), s); err != nil || f.Tokens > 28_000 {
		t.Errorf("%+v, %v", f, err)
	}
	s = at(4_000, 1_500, true)
	if f, err := (policy.Ladder{}).Plan(t.Context(), s); err != nil || f.Tokens > s.PromptTokens*3/4 {
		t.Errorf("refused: %+v, %v", f, err)
	}
}

// TestSummariesKeepTheirLimit: of a model that writes on behind its limit, and of a
// server that lets it, no more is taken than the limit allows, in whole sentences, and
// the report tells of the rest; an answer within the limit is taken whole. B6, C7, D6, E2
func TestSummariesKeepTheirLimit(t *testing.T) {
	var work, told []string
	messages := []thread.Message{speak(thread.User, "Please repair the shop.")}
	for n := range 300 {
		work = append(work, fmt.Sprintf("Shelf %d of the shop is repaired and painted.", n))
		messages = append(messages, speak(thread.Assistant, strings.Repeat("I look at it. ", 10)+work[n]), speak(thread.User, "Go on."))
	}
	for _, n := range []int{20, 300} {
		text := strings.Join(work[:n], "\n")
		told = append(told, text)
	}
	section := func(text string) []string { return strings.Split(text, "\n") }
	policies := map[string]func(policy.Trust, string) (p policy.Policy, limit int){
		"loop": func(trust policy.Trust, text string) (policy.Policy, int) {
			return policy.Loop{Model: llmtest.Script(llmtest.Say(text)), Trust: trust, ContextLimit: 100_000, MaxOutput: 1_000}, 1_000
		},
		"session": func(trust policy.Trust, text string) (policy.Policy, int) {
			return policy.Session{Model: llmtest.Script(llmtest.Say("#### Completed Work\n" + text)), Trust: trust}, 1_000
		},
		"timeline": func(trust policy.Trust, text string) (policy.Policy, int) {
			turns := slices.Repeat([]llmtest.Turn{llmtest.Say(text)}, 20)
			return policy.Timeline{Model: llmtest.Script(turns...), Trust: trust, MaxTokens: 15_000}, 800
		},
		"workstream": func(trust policy.Trust, text string) (policy.Policy, int) {
			turns := slices.Repeat([]llmtest.Turn{said([]string{"Shelf 1 of the shop is repaired and painted."}, section(text), nil, nil)}, 2)
			return policy.Workstream{Model: llmtest.Script(turns...), Trust: trust, RollupTokens: 1_500}, 1_500
		},
	}
	for name, made := range policies {
		for _, trust := range []policy.Trust{policy.TrustChecked, policy.TrustModel} {
			for n, text := range told {
				s := stateOf(t, threadOf(t, messages...), nil)
				p, limit := made(trust, text)
				f, err := p.Plan(t.Context(), s)
				if err != nil {
					t.Fatalf("%s, %s: %v", name, trust, err)
				}
				shown := f.Prompt.Messages[0].Text()
				taken := 0
				for _, line := range work {
					if strings.Contains(shown, line) {
						taken++
					}
				}
				long := n == 1
				tokens := s.Counter.Text(shown)
				if (taken < 20) || !long && taken > 21 || tokens > limit*5/4 || long && tokens < limit/2 {
					t.Errorf("%s, %s: %d sentences in %d tokens, the limit is %d", name, trust, taken, tokens, limit)
				}
				cut := 0
				for _, r := range f.Summaries {
					cut += r.Dropped["cut"]
				}
				if (name == "loop" || name == "session") && long && (taken+cut < 299 || taken+cut > 301) {
					t.Errorf("%s, %s: %d sentences of 300 are taken and %d are told to be cut", name, trust, taken, cut)
				}
				// A timeline's summary of a short beginning of a turn is cut at half of that.
				if (name == "loop" || name == "session") && (cut > 0) != long || name == "timeline" && long && cut == 0 {
					t.Errorf("%s, %s: %d cuts are reported, the text was too long: %v", name, trust, cut, long)
				}
			}
		}
	}
}
