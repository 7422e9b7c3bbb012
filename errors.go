package palimpsest

import "github.com/palimpsest-ai/palimpsest/policy"

// ErrOverBudget is wrapped by the error of a compaction that cannot meet its
// budget.
var ErrOverBudget = policy.ErrOverBudget

// BudgetError says what does not fit, and how large each of the parts is that
// no plan can take away. It matches ErrOverBudget.
type BudgetError = policy.BudgetError
