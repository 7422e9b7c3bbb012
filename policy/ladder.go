package policy

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/cut"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Ladder is the system of seed A: externalize, summarize, clear, drop, under the
// budget formula of its "Provider-Aware Token Budgeting" and with the defaults of
// its configuration table (A12, A17, A19). The zero value is the seed's.
//
// The seed has one mark, where a compaction begins and where it ends. So a thread
// that has reached it is compacted at almost every step, and its prefix is never
// the same for long; Auto leaves room instead.
type Ladder struct {
	// MaxInputTokens and SoftThreshold give the budget; defaults 100,000 and 0.85.
	MaxInputTokens int
	SoftThreshold  float64
	// DisableExternalization and its like switch rungs off; all are on by default.
	DisableExternalization, DisableSummarization, DisableClearing, DisableDropping bool
	// ExternalizeThreshold is in tokens, default 1,000; SummarizeTargetRatio is
	// the share of a span that its summary may take, default 0.25;
	// PreserveRecentTurns is default 3.
	ExternalizeThreshold int
	SummarizeTargetRatio float64
	PreserveRecentTurns  int
}

// Name returns "ladder".
func (Ladder) Name() string { return "ladder" }

// Due reports whether the messages take more than the budget leaves for them.
func (l Ladder) Due(s *State) (bool, string) {
	room, messages := l.room(s), s.Prompt-s.Fixed
	if messages <= room {
		return false, ""
	}
	return true, fmt.Sprintf("the messages take %d tokens, %d are available", messages, room)
}

// Plan climbs the ladder until the messages fit what is available for them.
func (l Ladder) Plan(ctx context.Context, s *State) (*Fitted, error) {
	budget := s.Fixed + l.room(s)
	if s.Forced {
		budget = min(budget, s.Prompt*3/4)
	}
	if s.Whole() <= budget {
		return nil, fmt.Errorf("policy ladder: the request takes %d tokens with nothing hidden, the budget is %d: %w", s.Whole(), budget, ErrNothing)
	}
	return Fit(ctx, s, l.Name(), l.Rungs(), budget)
}

// Rungs is the ladder with the policy's settings.
func (l Ladder) Rungs() strategy.Ladder {
	externalize := strategy.Externalize{Threshold: 1000}
	if l.ExternalizeThreshold > 0 {
		externalize.Threshold = l.ExternalizeThreshold
	}
	keep := 3
	if l.PreserveRecentTurns > 0 {
		keep = l.PreserveRecentTurns
	}
	summarize := strategy.Summarize{Keep: cut.LastTurns{N: keep}, Ratio: or(l.SummarizeTargetRatio, 0.25)}
	var rungs strategy.Ladder
	for _, rung := range []struct {
		off bool
		strategy.Strategy
	}{
		{l.DisableExternalization, externalize},
		{l.DisableSummarization, summarize},
		{l.DisableClearing, strategy.AfterSummaries(strategy.Clear{})},
		{l.DisableDropping, strategy.Drop{}},
	} {
		if !rung.off {
			rungs = append(rungs, rung.Strategy)
		}
	}
	return rungs
}

// room is A12's "available for messages".
func (l Ladder) room(s *State) int {
	b := token.Budget{MaxInput: l.MaxInputTokens, Soft: l.SoftThreshold, System: s.Fixed}
	if s.Budget > 0 {
		b.MaxInput = min(or0(b.MaxInput, s.Budget), s.Budget)
	}
	return b.Available()
}

func or0(n, fallback int) int {
	if n == 0 {
		return fallback
	}
	return n
}
