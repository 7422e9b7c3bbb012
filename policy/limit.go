package policy

import "github.com/palimpsest-ai/palimpsest/token"

// Limit is MaxInputTokens, or a smaller budget of the step.
func (l Ladder) Limit(s *Situation) int {
	limit := l.budget(s).Resolved().MaxInput
	if s.Budget > 0 {
		limit = min(limit, s.Budget)
	}
	return limit
}

// Limit is the context limit without what is kept free for the answer.
func (p Session) Limit(s *Situation) int {
	return max(0, p.limit(s)-or0(p.OutputReserve, outputReserve))
}

// Limit is MaxTokens, or what the step leaves where that is not set.
func (l Timeline) Limit(s *Situation) int { return l.maximum(s) }

// Limit is the window without the reserves for answer and errors; in a window
// that is no larger than these, the mark.
func (w Workstream) Limit(s *Situation) int {
	_, hard := w.marks(s)
	return hard
}

// Limit is the window without what is kept free for the answer.
func (l Loop) Limit(s *Situation) int { return max(0, l.limit(s)-l.maxOutput(s)) }

// Reserving is implemented by policies that keep room free for content that is
// brought back.
type Reserving interface {
	// Reserve is that room in tokens, and how many artifacts may be brought back
	// at a time; 0 is none of either.
	Reserve(s *Situation) (tokens, artifacts int)
}

// Reserve is RehydrationReserve and MaxRehydrated (A12).
func (l Ladder) Reserve(s *Situation) (tokens, artifacts int) {
	b := l.budget(s).Resolved()
	return b.RehydrationReserve, b.MaxRehydrated
}

var (
	_ Bounded   = Ladder{}
	_ Bounded   = Session{}
	_ Bounded   = Timeline{}
	_ Bounded   = Workstream{}
	_ Bounded   = Loop{}
	_ Reserving = Ladder{}
)

// budget is A12's budget of the policy and the step.
func (l Ladder) budget(s *Situation) token.Budget {
	b := token.Budget{
		MaxInput: l.MaxInputTokens, Soft: l.SoftThreshold, System: s.Fixed,
		Safety: l.SafetyBuffer, RehydrationReserve: l.RehydrationReserve, MaxRehydrated: l.MaxRehydrated,
	}
	if s.Budget > 0 {
		b.MaxInput = min(or0(b.MaxInput, s.Budget), s.Budget)
	}
	return b
}
