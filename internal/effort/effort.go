// Package effort bounds the work of an analysis by the size of its input, and ends it soon after
// its context is done. An analysis that is cut short says that the thing is not known, never
// something else.
package effort

const (
	// PerByte is how many units of work each byte of the input allows. A unit is what looking at
	// a byte takes in plain code, a nanosecond or two. Reading a byte as such takes a hundred of
	// them, so an analysis that goes over its input again and again stays the smaller part.
	PerByte = 32
	// free is what a small input may take in any case.
	free = 1 << 18
	// between is how many units lie between two looks at the context: well below a millisecond.
	between = 1 << 16
)

// An Ending says whether there is still somebody to work for: a context, by its error.
type Ending interface{ Err() error }

// Budget is the work that one analysis may still do. Make it with New; it is for one goroutine.
type Budget struct {
	ctx  Ending
	left int // units
	look int // units until the context is looked at
	done bool
}

// New returns the budget of an analysis of so many bytes.
func New(ctx Ending, bytes int) *Budget {
	return &Budget{ctx: ctx, left: free + PerByte*bytes}
}

// Allow adds so many bytes of input, unless the work is over.
func (b *Budget) Allow(bytes int) {
	if b.left >= 0 {
		b.left += PerByte * bytes
	}
}

// Spend notes n units of work that are about to be done, and reports whether they may be: it is
// false from when more was asked for than the input allows, or the context is done.
func (b *Budget) Spend(n int) bool {
	if n > b.left {
		b.left = -1
		return false
	}
	b.left -= n
	return b.Live(n)
}

// Live is Spend for work that goes over the input once: only the context ends it, and nothing the
// work of a nil Budget.
func (b *Budget) Live(n int) bool {
	if b == nil {
		return true
	}
	if b.look -= n; b.look <= 0 && !b.done {
		b.look = between
		b.done = b.ctx.Err() != nil
	}
	return !b.done
}
