package token

import "github.com/palimpsest-ai/palimpsest/prompt"

// Budget is how many tokens of a request are left for conversation messages
// once everything else that is sent has been paid for (A12). All counts are
// tokens.
//
// In MaxInput, Soft, Safety, RehydrationReserve and MaxRehydrated the zero value
// takes the default; a negative number means none at all.
type Budget struct {
	// MaxInput is the largest request; default 100,000.
	MaxInput int
	// Soft is the part of MaxInput that may be filled, 0 to 1; default 0.85.
	Soft float64
	// System, ToolSchemas and Formatting are what instructions, tool
	// definitions and the provider's wrapping take.
	System, ToolSchemas, Formatting int
	// Safety is kept free for the answer and for errors of estimates; default 500.
	Safety int
	// RehydrationReserve is kept free for artifacts that are brought back;
	// default 2,000. MaxRehydrated is how many may be at a time; default 3.
	RehydrationReserve, MaxRehydrated int
}

// The defaults of the budget (A12, seed "Configuration").
const (
	defaultMaxInput           = 100_000
	defaultSoft               = 0.85
	defaultSafety             = 500
	defaultRehydrationReserve = 2_000
	defaultMaxRehydrated      = 3
)

// Resolved returns the budget with the defaults written out and negative
// numbers as 0. Resolving twice is not the same as once: what was negative
// would become the default.
func (b Budget) Resolved() Budget {
	b.MaxInput = orDefault(b.MaxInput, defaultMaxInput)
	b.Soft = orDefault(b.Soft, defaultSoft)
	b.Safety = orDefault(b.Safety, defaultSafety)
	b.RehydrationReserve = orDefault(b.RehydrationReserve, defaultRehydrationReserve)
	b.MaxRehydrated = orDefault(b.MaxRehydrated, defaultMaxRehydrated)
	return b
}

func orDefault[N int | float64](n, fallback N) N {
	if n == 0 {
		return fallback
	}
	return max(n, 0)
}

// Available returns the tokens that conversation messages may take:
//
//	int(MaxInput × Soft) − (System + ToolSchemas + Formatting + Safety + RehydrationReserve)
//
// It is negative when the rest alone does not fit.
func (b Budget) Available() int {
	b = b.Resolved()
	return int(float64(b.MaxInput)*b.Soft) - (b.System + b.ToolSchemas + b.Formatting + b.Safety + b.RehydrationReserve)
}

// Measured returns the budget with System, ToolSchemas and Formatting counted
// from a prompt, so that the prompt keeps to the budget exactly when its
// messages together take at most Available.
func (b Budget) Measured(c *Counter, p *prompt.Prompt) Budget {
	b.System, b.ToolSchemas, b.Formatting = c.System(p.System), c.Tools(p.Tools), c.Overhead()
	return b
}

// Marks are the sizes of a whole request at which something is done, in tokens.
// The zero value means that the window is not known and nothing triggers.
type Marks struct {
	// Usable is the largest request that leaves room for the answer.
	Usable int
	// Soft is where a plan is prepared in the background, Hard where the
	// conversation waits for it, and Target what a compaction brings it down to.
	Soft, Hard, Target int
}

// The marks as parts of the usable input, and the least room kept for an
// answer, in the range that coding agents in use in 2026 have them: soft 70 to 75
// percent, hard 90, target at most half, 20,000 for the answer.
const (
	softMark   = 0.75
	hardMark   = 0.90
	targetMark = 0.50
	leastRoom  = 20_000
)

// Marks returns the marks of a request to the model. The answer takes output
// tokens; 0 stands for the model's own limit. Room for the answer is at least
// 20,000 tokens and at most half the window.
func (m Model) Marks(output int) Marks {
	if m.Window <= 0 {
		return Marks{}
	}
	if output <= 0 {
		output = m.MaxOutput
	}
	usable := m.Window - min(max(output, leastRoom), m.Window/2)
	if m.MaxInput > 0 {
		usable = min(usable, m.MaxInput)
	}
	part := func(f float64) int { return int(float64(usable) * f) }
	return Marks{Usable: usable, Soft: part(softMark), Hard: part(hardMark), Target: part(targetMark)}
}
