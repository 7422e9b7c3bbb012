package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/strategy/cut"
	"github.com/palimpsest-ai/palimpsest/token"
)

// Ladder is seed A: externalize, summarize, clear, drop, with the budget formula of its
// "Provider-Aware Token Budgeting" and the defaults of its configuration table. The zero
// value is the seed's, except for Target.
//
// The seed has one mark, where a compaction begins, and does not say where it ends. Here
// it goes down to half of the room for messages (Target), so that the prefix stays the
// same for more than a step.
type Ladder struct {
	// MaxInputTokens and SoftThreshold give the budget; defaults 100,000 and 0.85. A smaller
	// budget of the step, or what its window leaves beside the answer, takes the place of
	// MaxInputTokens.
	MaxInputTokens int     `file:"trigger.max_input_tokens" unit:"tokens" range:"1.." about:"the largest request"`
	SoftThreshold  float64 `file:"trigger.soft_threshold_percent" unit:"ratio" range:"0.001..1" about:"share of max_input_tokens that may be filled"`
	// SafetyBuffer is kept free for errors of the count, RehydrationReserve for content
	// that is brought back, in tokens; MaxRehydrated is how many artifacts may be brought
	// back at a time. Defaults 500, 2,000 and 3; negative is none.
	SafetyBuffer       int `file:"trigger.safety_buffer_tokens" unit:"tokens" range:"0.." about:"kept free for errors of the count"`
	RehydrationReserve int `file:"trigger.rehydration_reserve_tokens" unit:"tokens" range:"0.." about:"kept free for content that is brought back"`
	MaxRehydrated      int `file:"trigger.max_rehydration_artifacts" unit:"artifacts" range:"0.." about:"how many artifacts may be brought back at a time"`
	// DisableExternalization and the others switch rungs off; all are on by default.
	DisableExternalization bool `file:"ladder.enable_externalization" not:"true" about:"store large results outside of the prompt and leave a pointer"`
	DisableSummarization   bool `file:"ladder.enable_summarization" not:"true" about:"summarize older spans"`
	DisableClearing        bool `file:"ladder.enable_clearing" not:"true" about:"replace results by a placeholder"`
	DisableDropping        bool `file:"ladder.enable_dropping" not:"true" about:"leave messages out, as the last resort"`
	// ExternalizeThreshold is in tokens, default 1,000; SummarizeTargetRatio is the share
	// of a span that its summary may take, default 0.25; PreserveRecentTurns is default 3.
	ExternalizeThreshold int     `file:"ladder.externalize_threshold_tokens" unit:"tokens" range:"1.." about:"from what size a result is externalized"`
	SummarizeTargetRatio float64 `file:"ladder.summarize_target_ratio" unit:"ratio" range:"0.001..1" about:"share of a span that its summary may take"`
	PreserveRecentTurns  int     `file:"cut.preserve_recent_turns" unit:"turns" range:"1.." about:"how many of the newest turns are not summarized"`
	// Target is the share of the room for messages that a compaction goes down to, default
	// 0.5. At 1, to the letter of the seed, nearly every step compacts again and changes
	// the prefix.
	Target float64 `file:"trigger.target" unit:"ratio" range:"0.001..1" about:"share of what is available for messages that a compaction goes down to"`
}

// Name returns "ladder".
func (Ladder) Name() string { return "ladder" }

// Defaults returns the policy with its defaults filled in, for display. It decides the
// same.
func (l Ladder) Defaults() Ladder {
	budget := token.Budget{MaxInput: l.MaxInputTokens, Soft: l.SoftThreshold}.Resolved()
	l.MaxInputTokens, l.SoftThreshold = budget.MaxInput, budget.Soft
	l.SafetyBuffer, l.RehydrationReserve, l.MaxRehydrated = cmp.Or(l.SafetyBuffer, budget.Safety), cmp.Or(l.RehydrationReserve, budget.RehydrationReserve), cmp.Or(l.MaxRehydrated, budget.MaxRehydrated)
	l.ExternalizeThreshold, l.SummarizeTargetRatio = cmp.Or(l.ExternalizeThreshold, 1000), cmp.Or(l.SummarizeTargetRatio, 0.25)
	l.PreserveRecentTurns, l.Target = cmp.Or(l.PreserveRecentTurns, 3), cmp.Or(l.Target, 0.5)
	return l
}

// budget is the seed's budget for the step, beside system and tools of that size.
func (l Ladder) budget(s *Situation, fixed int) token.Budget {
	return token.Budget{
		MaxInput: l.Limit(s), Soft: l.SoftThreshold, System: fixed,
		Safety: l.SafetyBuffer, RehydrationReserve: l.RehydrationReserve, MaxRehydrated: l.MaxRehydrated,
	}
}

// Limit is MaxInputTokens, or less where the step's budget or window leaves less.
func (l Ladder) Limit(s *Situation) int {
	return smallerLimit(l.Defaults().MaxInputTokens, s.Limit())
}

// Reserve is RehydrationReserve and MaxRehydrated.
func (l Ladder) Reserve(s *Situation) (tokens, artifacts int) {
	b := l.budget(s, s.Fixed).Resolved()
	return b.RehydrationReserve, b.MaxRehydrated
}

// Due reports whether the messages take more than the budget leaves for them beside system and
// tools as they are: those that come with the first plan do not count before it.
func (l Ladder) Due(s *Situation) (bool, string) {
	room, messages := l.budget(s, s.SentFixed).Available(), s.MessageTokens
	if messages <= room {
		return false, ""
	}
	return true, fmt.Sprintf("the messages take %d tokens, %d are available", messages, room)
}

// Plan climbs the ladder until the messages take at most Target of their room, or up to three
// quarters of it where the turns that stay take as much. A forced
// compaction (Situation.Forced) makes the request at least a quarter smaller; one with a
// budget (Situation.Fill) fills that.
func (l Ladder) Plan(ctx context.Context, s *Situation) (*Fitted, error) {
	if s.Fill {
		return fill(ctx, s, l.Name(), l.Rungs())
	}
	budget := s.Fixed + l.budget(s, s.Fixed).Available()
	room := budget - s.Fixed
	target := s.Fixed + int(float64(room)*l.Defaults().Target)
	if recent := l.recentTokens(s) + room/besideRecent; recent <= room/4*3 { // with more the next compaction would follow at once
		target = max(target, s.Fixed+recent)
	}
	// With rungs switched off, or beside long messages of the user's, what must stay may be
	// more than the target: the seed asks for the budget alone.
	budgets := []int{target, (target + budget) / 2, budget}
	if s.Forced { // somebody asked for a request of that size
		smaller := s.PromptTokens * 3 / 4
		budget = min(budget, smaller)
		// In a small window the reserves may leave no budget at all.
		budgets = []int{budget, smaller}
	}
	if s.UncompactedTokens() <= budget {
		return nil, fmt.Errorf("policy ladder: the request takes %s tokens with nothing hidden, the budget is %s: %w", clip.Number(s.UncompactedTokens()), clip.Number(budget), ErrNothing)
	}
	whole := max(budget, l.Limit(s)) // what the model has not seen yet arrives whole as long as it fits the request
	if s.Forced {
		whole = budget
	}
	return Fit(ctx, s, l.Name(), l.Rungs(), whole, budgets...)
}

// besideRecent is the part of the room, as a divisor, that a compaction leaves to what comes
// before the turns that stay, where these take more than Target.
const besideRecent = 8

// recentTokens is what the newest turns take that are not summarized.
func (l Ladder) recentTokens(s *Situation) int {
	tokens := 0
	for i := (cut.LastTurns{N: l.Defaults().PreserveRecentTurns}).Cut(cut.Legal(s.Thread, s.Pairs()), nil); i < len(s.ChangedSizes); i++ {
		tokens += s.ChangedSizes[i]
	}
	return tokens
}

// Rungs is the ladder with the policy's settings. strategy/ladder.go has the order of the
// rungs.
func (l Ladder) Rungs() strategy.Ladder {
	l = l.Defaults()
	externalize := strategy.Externalize{Threshold: l.ExternalizeThreshold}
	summarize := strategy.Summarize{Keep: cut.LastTurns{N: l.PreserveRecentTurns}, Ratio: l.SummarizeTargetRatio, Pointers: true}
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
