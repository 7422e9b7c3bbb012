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
