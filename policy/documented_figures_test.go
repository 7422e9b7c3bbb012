package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// turns are the seed's turns A to E, four messages each.
func turns(t *testing.T) *thread.Thread {
	t.Helper()
	var messages []thread.Message
	for _, name := range []string{"A", "B", "C", "D", "E"} {
		messages = append(messages,
			speak(thread.User, "TURN "+name+": look at the report."),
			callTool("c"+name, "Read", `{"file_path":"report.md"}`, "I open the report of turn "+name+"."),
			answerTool("c"+name, "Read", strings.Repeat("a line of the report\n", 40)),
			speak(thread.Assistant, "Turn "+name+" is over, the report of it was read."),
		)
	}
	return threadOf(t, messages...)
}

// TestTimelineDiagrams are the seed's pictures: a summary of A to C in front of D
// and E, with cache points at the end of D and of E alone; and one of A and B
// with the beginning of C, whose end stays. A model writes both texts. C5, C6,
// C7, C9
func TestTimelineDiagrams(t *testing.T) {
	const history, prefix = "Turn A is over, the report of it was read. Turn B is over, the report of it was read.", "I open the report of turn C."
	for _, test := range []struct {
		name        string
		first       int // the message that the visible stream begins with
		said        []llmtest.Turn
		covered     []string
		split, text string
		points      []int // messages of the prompt with a cache point behind them
	}{
		{
			name: "between turns", first: 12, said: []llmtest.Turn{llmtest.Say(history + " Turn C is over, the report of it was read.")},
			covered: []string{"turn_1", "turn_2", "turn_3"},
			text:    "[conv.range.summary su:turn_3.conv.range.summary]\n" + history + " Turn C is over, the report of it was read.", points: []int{8, 4},
		},
		{
			name: "inside of C", first: 11, said: []llmtest.Turn{llmtest.Say(history), llmtest.Say(prefix)},
			covered: []string{"turn_1", "turn_2"}, split: "turn_3",
			text:   "[conv.range.summary su:turn_3.conv.range.summary]\n" + history + "\n\nTurn Context (split turn)\n" + prefix,
			points: []int{9, 5, 1}, // a round is a call of the model: five are visible, so the end of C is N-4
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			th, keep := turns(t), 0
			s := stateOf(t, th, nil)
			for i := test.first; i < th.Len(); i++ {
				keep += s.ChangedSizes[i]
			}
			s.Profile.CachePoints = 4
			model := llmtest.Script(test.said...)
			f, err := policy.Timeline{Model: model, MaxTokens: s.PromptTokens, KeepRecent: keep, SummaryTokens: 100, PrefixTokens: 60}.Plan(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if _, failure := f.Fallback(); failure != nil {
				t.Fatal(failure)
			}
			r := f.Plan.Summarizations[0].Range
			if diff := cmp.Diff(test.covered, r.CoveredTurns); diff != "" || r.SplitTurn != test.split || r.Type != "conv.range.summary" {
				t.Errorf("covered %v, split %q, type %s", r.CoveredTurns, r.SplitTurn, r.Type)
			}
			// The user's words are added by code, in front of what the model said.
			got := f.Prompt.Messages[0].Text()
			head, body, _ := strings.Cut(test.text, "\n")
			if !strings.HasPrefix(got, head+"\n") || !strings.HasSuffix(got, body) {
				t.Errorf("the summary is\n%s\nwant\n%s", got, test.text)
			}
			var shown []thread.ID
			for _, m := range f.Prompt.Messages[1:] {
				shown = append(shown, m.ID)
			}
			var want []thread.ID
			for _, m := range th.Messages()[test.first:] {
				want = append(want, m.ID)
			}
			if !slices.Equal(shown, want) {
				t.Errorf("%d messages are visible, want %d", len(shown), len(want))
			}
			var points []prompt.CachePoint
			for _, at := range test.points {
				points = append(points, prompt.CachePoint{After: at})
			}
			if diff := cmp.Diff(points, f.Prompt.CachePoints); diff != "" {
				t.Errorf("cache points:\n%s", diff)
			}
			if model.Remaining() != 0 {
				t.Errorf("%d answers are left", model.Remaining())
			}
			for n, asked := range model.Asked() {
				if want := fmt.Sprintf("Use at most %d tokens.", []int{100, 60}[n]); !strings.Contains(asked.Prompt.System[0].Text, want) {
					t.Errorf("request %d does not say %q", n+1, want)
				}
			}
		})
	}
}

// TestTimelineConstants: what the zero value tells the model and the renderer is
// what the seed says: 800 and 400 tokens, round N-4, five rounds at least. C7, C9
func TestTimelineConstants(t *testing.T) {
	var messages []thread.Message
	for n := range 60 {
		messages = append(messages, oneTurn(n)...)
	}
	s := stateOf(t, threadOf(t, messages[:len(messages)-3]...), nil)
	s.Budget = 12_000
	model := llmtest.Script(slices.Repeat([]llmtest.Turn{llmtest.Say("I fix the parser.")}, 8)...)
	f, err := policy.Timeline{Model: model, KeepRecent: 150}.Plan(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if *f.Plan.Cache != (plan.CacheRule{Offset: 4, MinRounds: 5}) {
		t.Errorf("cache rule %+v", *f.Plan.Cache)
	}
	asked := model.Asked()
	if first := asked[0].Prompt.System[0].Text; !strings.Contains(first, "Use at most 800 tokens.") {
		t.Errorf("the summary is asked for with: %s", first)
	}
	if l := (policy.Timeline{}).Defaults(); l.SummaryTokens != 800 || l.PrefixTokens != 400 || l.Share != 0.9 || l.CacheOffset != 4 {
		t.Errorf("%+v", l)
	}
}

// TestWorkstreamRollupMark: up to 80,000 tokens at three characters each a summary
// stays as it is, above it is rolled up. D6
func TestWorkstreamRollupMark(t *testing.T) {
	messages := []thread.Message{speak(thread.User, "a word"), speak(thread.Assistant, "The word was written.")}
	for range 6 {
		messages = append(messages, speak(thread.User, "q"))
	}
	// "KEY FACTS:" takes 10 characters, an entry of k words 5k+2: 478 of a hundred
	// and one of six are 239,998, with one of seven 240,003.
	for k, want := range map[int]int{6: 1, 7: 2} {
		words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
		answer := said(append(slices.Repeat([]string{words(100)}, 478), words(k)), nil, nil, nil)
		model := llmtest.Script(answer, said([]string{"word"}, nil, nil, nil))
		w := policy.Workstream{Model: model}
		s := stateOf(t, threadOf(t, messages...), nil)
		f, err := w.Plan(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if _, failure := f.Fallback(); failure != nil {
			t.Fatal(failure)
		}
		if got := len(model.Asked()); got != want {
			t.Errorf("%d words at the end: %d requests, want %d", k, got, want)
		}
	}
}

// TestLadderDueAtTheMark: what is available may be used up, one token more is
// due: int(10,000 × 0.85) − (fixed + 500 + 2,000). A12
func TestLadderDueAtTheMark(t *testing.T) {
	l := policy.Ladder{MaxInputTokens: 10_000}
	for _, over := range []int{0, 1} {
		s := &policy.Situation{Thread: thread.New("t"), Fixed: 600, SentFixed: 100, MessageTokens: 8_500 - 100 - 500 - 2_000 + over}
		if due, why := l.Due(s); due != (over > 0) {
			t.Errorf("%d over: due %v %s", over, due, why)
		}
	}
}
