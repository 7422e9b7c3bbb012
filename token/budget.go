package token

// Budget says how many tokens of a request are left for conversation messages after
// everything else. All counts are tokens.
//
// For MaxInput, Soft, Safety, RehydrationReserve and MaxRehydrated, 0 is the default and a
// negative number means none.
type Budget struct {
	// MaxInput is the largest request; default 100,000.
	MaxInput int
	// Soft is the share of MaxInput that may be filled, 0 to 1; default 0.85.
	Soft float64
	// System, ToolSchemas and Formatting are the sizes of instructions, tool definitions and
	// the provider's wrapping.
	System, ToolSchemas, Formatting int
	// Safety is kept free for the answer and for errors of estimates; default 500.
	Safety int
	// RehydrationReserve is kept free for artifacts that are brought back;
	// default 2,000. MaxRehydrated is how many may be at a time; default 3.
	RehydrationReserve, MaxRehydrated int
}

// Resolved returns the budget with defaults filled in and negative numbers as 0. Do not call
// it twice: numbers that were negative would become the default.
func (b Budget) Resolved() Budget {
	b.MaxInput = orDefault(b.MaxInput, 100_000)
	b.Soft = orDefault(b.Soft, 0.85)
	b.Safety = orDefault(b.Safety, 500)
	b.RehydrationReserve = orDefault(b.RehydrationReserve, 2_000)
	b.MaxRehydrated = orDefault(b.MaxRehydrated, 3)
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
// It is negative if the rest alone does not fit.
func (b Budget) Available() int {
	b = b.Resolved()
	return int(float64(b.MaxInput)*b.Soft) - (b.System + b.ToolSchemas + b.Formatting + b.Safety + b.RehydrationReserve)
}
