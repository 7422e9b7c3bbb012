package cut_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/palimpsest-ai/palimpsest/internal/test/property"
	"github.com/palimpsest-ai/palimpsest/internal/test/threadgen"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// script makes a thread from a line of letters: u user, a assistant text,
// c a call, p two parallel calls, r the result of the oldest unanswered call.
func script(t testing.TB, letters string) *thread.Thread {
	t.Helper()
	th := thread.New("script")
	var open []string
	for i, l := range letters {
		var m thread.Message
		switch l {
		case 'u':
			m = thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("ask ", i)}}}
		case 'a':
			m = thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprint("say ", i)}}}
		case 'c', 'p':
			m = thread.Message{Role: thread.Assistant}
			for k := range map[rune]int{'c': 1, 'p': 2}[l] {
				id := fmt.Sprintf("call-%d-%d", i, k)
				open = append(open, id)
				m.Parts = append(m.Parts, thread.ToolCall{ID: id, Name: "read", Arguments: "{}"})
			}
		case 'r':
			m = thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: open[0], Tool: "read"}}}
			open = open[1:]
		}
		var err error
		if th, err = th.Append(m); err != nil {
			t.Fatal(err)
		}
	}
	return th
}

func TestLegal(t *testing.T) {
	tests := []struct{ letters, legal string }{
		{"", "y"},
		{"ua", "yyy"},
		{"ucra", "yynyy"},
		{"uprra", "yynnyy"},
		{"uc", "yyn"},       // the call waits: nothing after it may be cut off
		{"upr", "yynn"},     // half a batch has come
		{"ucua", "yyyyy"},   // the call was aborted when the user spoke
		{"ucuar", "yynnny"}, // its late result keeps all between together
	}
	for _, tt := range tests {
		th := script(t, tt.letters)
		points := cut.Legal(th, thread.Pair(th))
		got := ""
		for i := range th.Len() + 1 {
			if points.Legal(i) {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != tt.legal {
			t.Errorf("%s: legal cuts %s, want %s", tt.letters, got, tt.legal)
		}
	}
}

func TestPolicies(t *testing.T) {
	th := script(t, "ucra"+"ucracra"+"ua")
	points := cut.Legal(th, thread.Pair(th))
	ten := func(int) int { return 10 }
	tests := []struct {
		policy cut.Policy
		want   int
	}{
		{cut.LastMessages{N: 3}, 10},
		{cut.LastMessages{N: 4}, 8}, // 9 is a result
		{cut.LastMessages{N: 99}, 0},
		{cut.LastMessages{N: 0}, 13},
		{cut.LastTurns{N: 1}, 11},
		{cut.LastTurns{N: 2}, 4},
		{cut.LastTurns{N: 9}, 0},
		{cut.LastTokens{N: 60}, 11},
		{cut.LastTokens{N: 60, SplitTurns: true}, 7},
		{cut.LastTokens{N: 5}, 12}, // never nothing
		{cut.LastTokens{N: 1000}, 0},
		{cut.Ratio{Keep: 0.3}, 10},
	}
	for _, tt := range tests {
		if got := tt.policy.Cut(points, ten); got != tt.want {
			t.Errorf("%#v: %d, want %d", tt.policy, got, tt.want)
		}
	}
}

// TestCutsKeepPairsTogether: whatever the thread and the policy, no call before
// the cut has a result after it, and none waits there.
func TestCutsKeepPairsTogether(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		th := threadgen.Thread().Draw(rt, "thread")
		pairs := thread.Pair(th)
		points := cut.Legal(th, pairs)
		policy := rapid.SampledFrom([]cut.Policy{
			cut.LastMessages{N: rapid.IntRange(0, 20).Draw(rt, "n")},
			cut.LastTurns{N: rapid.IntRange(0, 5).Draw(rt, "turns")},
			cut.LastTokens{N: rapid.IntRange(0, 200).Draw(rt, "tokens"), SplitTurns: rapid.Bool().Draw(rt, "split")},
			cut.Ratio{Keep: rapid.Float64Range(0, 1).Draw(rt, "keep")},
		}).Draw(rt, "policy")
		at := policy.Cut(points, func(i int) int { return 1 + len(th.At(i).Parts) })
		for i := range at {
			if pairs.Open(i) {
				rt.Fatalf("cut at %d leaves the waiting call at %d behind", at, i)
			}
			for _, r := range pairs.Results(i) {
				if r >= at {
					rt.Fatalf("cut at %d parts the call at %d from its result at %d", at, i, r)
				}
			}
		}
	})
}
