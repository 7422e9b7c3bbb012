package palimpsest

import (
	"errors"

	"github.com/palimpsest-ai/palimpsest/policy"
)

var (
	// ErrOverBudget is wrapped by the error of a compaction that cannot meet its
	// budget.
	ErrOverBudget = policy.ErrOverBudget
	// ErrNoRoom is wrapped by the error of Overflowed when compacting harder gave
	// no smaller request: to send it again would only be refused again.
	ErrNoRoom = errors.New("the request cannot be made smaller")
	// ErrMaxTokens is wrapped by the error of CutOff when compacting would not
	// help: the loop ends, for a reason of its own.
	ErrMaxTokens = policy.ErrMaxTokens
)

// BudgetError says what does not fit, and how large each of the parts is that
// no plan can take away. It matches ErrOverBudget.
type BudgetError = policy.BudgetError
