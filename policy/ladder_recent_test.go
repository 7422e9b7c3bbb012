package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLadderKeepsRecentTurns: the newest turns that PreserveRecentTurns names are whole in every prompt, also where they
// take more than half of the room, which a compaction goes down to otherwise. A19
func TestLadderKeepsRecentTurns(t *testing.T) {
	for _, words := range []int{300, 600, 700} {
		c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{MaxInputTokens: 20_000}, Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		s, plans := c.Session("t"), 0
		answer := func(n int) string {
			return fmt.Sprintf("Part %d is done. ", n) + strings.Repeat(fmt.Sprintf("the shelf %d is red ", n), words)
		}
		for n := range 24 {
			out, err := s.PrepareStep(t.Context(), palimpsest.Step{Window: 60_000, Output: 1_000, Messages: []thread.Message{speak(thread.User, fmt.Sprintf("Now part %d, please.", n))}})
			if err != nil {
				t.Fatal(err)
			}
			plans = out.PlanVersion
			all := promptText(out.Prompt)
			for k := max(0, n-2); k < n; k++ { // with the turn that has begun there are three
				if !strings.Contains(all, strings.TrimSpace(answer(k))) {
					t.Errorf("%d words, turn %d, %d tokens: turn %d is not whole", words, n, out.Tokens, k)
				}
			}
			if err := s.FinishStep(t.Context(), out, wire.Usage{}, speak(thread.Assistant, strings.TrimSpace(answer(n)))); err != nil {
				t.Fatal(err)
			}
		}
		if plans < 2 {
			t.Errorf("%d words: %d plans", words, plans)
		}
	}
}
