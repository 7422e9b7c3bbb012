package policy_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
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
			return &policy.Situation{Base: &prompt.Prompt{}, Messages: messages}
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
