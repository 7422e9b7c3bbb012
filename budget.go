package palimpsest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrOverBudget is wrapped by the error of a compaction that cannot meet its
// budget.
var ErrOverBudget = errors.New("the budget cannot be met")

// BudgetError says what does not fit, and how large each of the parts is that
// no plan can take away.
type BudgetError struct {
	Budget, Need int // tokens of the whole request
	Parts        []Part
	// Err holds what the rungs of the ladder reported; may be nil.
	Err error
}

// Part is a piece of a request that must stay.
type Part struct {
	Name   string
	Tokens int
}

// Error names the parts.
func (e *BudgetError) Error() string {
	parts := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		parts[i] = fmt.Sprintf("%s %d", p.Name, p.Tokens)
	}
	return fmt.Sprintf("%v: it is %d tokens, what must stay takes %d (%s); raise the budget or shorten these parts",
		ErrOverBudget, e.Budget, e.Need, strings.Join(parts, ", "))
}

// Is makes every BudgetError match ErrOverBudget.
func (e *BudgetError) Is(target error) bool { return target == ErrOverBudget }

// Unwrap returns what the rungs reported.
func (e *BudgetError) Unwrap() error { return e.Err }

// leastSummary is about the least that a summary of everything else takes, in
// tokens.
const leastSummary = 150

// overBudget lists what must stay: system, tools, the user's first and last
// message, calls that wait for their results, and the least summary.
func (j *job) overBudget(failed error) error {
	e := &BudgetError{Budget: j.Budget, Err: failed}
	add := func(name string, tokens int) {
		if tokens > 0 {
			e.Parts = append(e.Parts, Part{name, tokens})
			e.Need += tokens
		}
	}
	counter := j.config.Counter
	add("system prompt", counter.System(j.base.System))
	add("tool definitions", counter.Tools(j.base.Tools))
	add("framing of the request", j.fixed-e.Need)
	known := j.sizes.of(j.Thread, j.Profile, true)
	first, last := -1, -1
	for i, m := range j.Thread.All() {
		if m.StartsTurn() {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first >= 0 {
		add("the task (turn 1)", known[first])
	}
	if last > first {
		add(fmt.Sprintf("the last user message (turn %d)", j.Thread.At(last).Turn), known[last])
	}
	for i := range j.Thread.Len() {
		if j.pairs.Open(i) {
			add("calls that wait for results", known[i])
		}
	}
	add("a summary of the rest", leastSummary)
	return e
}
