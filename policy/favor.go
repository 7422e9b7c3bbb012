package policy

// Favor says what Auto gives way to: when it compacts, and how much it keeps.
// The zero value, and any word that is not one of the three, is FavorBalanced.
type Favor string

const (
	// FavorQuality compacts only near the window: at 80 % of what the model can
	// read beside its answer, and keeps half of that. Prices and a cold cache do
	// not count.
	FavorQuality Favor = "quality"
	// FavorBalanced compacts by prices as FavorCost does, but not before the
	// request takes 64,000 tokens, or 45 % of a smaller window, and keeps at least
	// half of that. Where the provider has forgotten the prompt, so that it is
	// written anew in any case, three quarters of that size are enough.
	FavorBalanced Favor = "balanced"
	// FavorCost compacts as soon as a longer prompt would cost more than the
	// compaction, which with the usual prices is at about 35,000 tokens, and keeps
	// 20,000 of messages.
	FavorCost Favor = "cost"
)

// Favors are the words that a Favor may be, the one that keeps most first.
func Favors() []string {
	return []string{string(FavorQuality), string(FavorBalanced), string(FavorCost)}
}

const (
	// balancedMark is the size below which FavorBalanced lets a request be, in
	// tokens, and balancedShare what it is of a window in which that would be more,
	// as a ratio. balancedKept is the share of it that stays at least, balancedCold
	// the share from which a forgotten prompt is compacted: on the dev split, from
	// three quarters on costs 8 % less than from the whole on, with 3.4 compactions
	// of a session for 3.0; as soon as it saves anything, 14 % less with 5.1. The curve
	// of cost over recall that the figures are taken from stands in docs/evaluation.md.
	balancedMark  = 64_000
	balancedShare = 0.45
	balancedKept  = 0.5
	balancedCold  = 0.75

	// qualityHard and qualityKept are the hard mark of FavorQuality as a share of
	// what the model can read, and the share of the mark that stays.
	qualityHard = 0.8
	qualityKept = 0.5
)

// resolved is the policy with what its favor says written into the fields that
// are not set. Working stays 0 where the balanced mark has a say in it too.
func (a Auto) resolved() Auto {
	hard, target := defaultHard, defaultTarget
	switch a.Favor {
	case FavorCost:
		a.Working = or0(a.Working, defaultWorking)
	case FavorQuality:
		hard = qualityHard
		target = qualityKept * or(a.Hard, hard)
	default:
		a.Favor = FavorBalanced
	}
	a.Hard, a.Target = or(a.Hard, hard), or(a.Target, target)
	return a
}

// Marks are sizes of the whole request, in tokens.
type Marks struct {
	// Mark is where the thread is compacted, 0 where nothing is known to go by.
	// Soft is where a compaction is prepared beside the agent, where there is a
	// queue of jobs, and Hard the most that a request may be before it is compacted,
	// whatever tokens cost; both are 0 where the window is not known.
	Soft, Mark, Hard int
	// Target is what the request may take afterwards, at most.
	Target int
	// Priced: the mark is where prices put it, and not the hard one.
	Priced bool
}

// Marks says when the policy compacts and what it leaves: Target < Mark ≤ Hard,
// and Hard is at most what the model can read.
func (a Auto) Marks(s *Situation) Marks {
	a = a.resolved()
	m := Marks{Hard: s.share(a.Hard), Target: a.target(s)}
	m.Soft, m.Mark = s.share(min(defaultSoft, a.Hard)), m.Hard
	if priced := a.mark(s); priced > 0 && (m.Hard == 0 || priced < m.Hard) {
		m.Mark, m.Priced = priced, true
		m.Soft = min(m.Soft, priced)
	}
	return m
}

// floor is the size below which prices do not decide for a compaction, in tokens.
func (a Auto) floor(s *Situation) int {
	floor := a.least(s)
	if s.Cold {
		floor = int(balancedCold * float64(floor))
	}
	return floor
}

// least is what FavorBalanced lets a request be, in tokens; 0 in favor of cost.
func (a Auto) least(s *Situation) int {
	switch {
	case a.Favor == FavorCost:
		return 0
	case s.limit() > 0:
		return min(balancedMark, s.share(balancedShare))
	}
	return balancedMark
}
