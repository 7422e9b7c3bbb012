package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/strategy"
)

// ErrOverBudget is wrapped by the error of a compaction that cannot meet its
// budget.
var ErrOverBudget = errors.New("the budget cannot be met")

// BudgetError says what does not fit, and how large each of the parts is that
// no plan can take away.
type BudgetError struct {
	// Budget and Need are tokens of the whole request. Need is a budget that
	// can be met.
	Budget, Need int
	Parts        []Part
	// Err holds what the rungs of the ladder reported; may be nil.
	Err error
}

// errNothingLeft is why a plan that fits is not taken: every provider wants a
// message.
var errNothingLeft = errors.New("no message would be left")

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

const (
	// attempts bounds how often a plan is made again because the rendered request
	// came out larger than the planner's sum (repairs of the log add a little).
	attempts = 5
	// slackStep is what each further attempt leaves free beside, in tokens times
	// the square of its number: a smaller room can be filled a little differently.
	slackStep = 4
	// leastSummary is room in which every stretch finds a summary, in tokens: no
	// drawn conversation needed more. Many do with half of it.
	leastSummary = 300
)

// Fit climbs a ladder until the whole request takes at most budget tokens. It
// tries the levels of protection, the most generous first. Less of the newest
// part is better than messages that leave no trace, so a plan that drops some is
// taken only when no level does without. An error that wraps ErrOverBudget is a
// *BudgetError; nothing else is refused, since the last resort needs neither a
// model nor a store.
func Fit(ctx context.Context, s *State, name string, ladder strategy.Ladder, budget int) (*Fitted, error) {
	if s.Allows != nil {
		gentle := slices.DeleteFunc(slices.Clone(ladder), func(rung strategy.Strategy) bool { return !s.Allows(rung.Name()) })
		if len(gentle) < len(ladder) {
			if f, err := fit(ctx, s, name, gentle, budget); err == nil {
				return f, nil
			}
		}
	}
	return fit(ctx, s, name, ladder, budget)
}

func fit(ctx context.Context, s *State, name string, ladder strategy.Ladder, budget int) (*Fitted, error) {
	var failed error
	var leaves *Fitted // the first that fits but leaves something out
	given := strategy.Given{
		Thread: s.Thread, Pairs: s.Pairs(), Profile: s.Profile,
		Count: s.Count, CountText: s.Counter.Text, Sizes: s.Changed,
		Tools: s.Tools, Current: s.Source, Summarizer: s.Summarizer, Name: s.Name,
		Instructions: s.Instructions, Sent: s.sent(),
	}
	for _, level := range strategy.Protections() {
		room := budget - s.Fixed
		for n := range attempts {
			given.Room = room
			if room <= 0 {
				break
			}
			v := strategy.NewView(given)
			v.Protect(level)
			fits, err := ladder.Climb(ctx, v)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !fits {
				failed = errors.Join(failed, err)
				break
			}
			p := s.Draft(name)
			for _, record := range v.Records() {
				p.Add(record)
			}
			f, err := s.Render(p)
			if err != nil {
				return nil, err
			}
			if len(f.Prompt.Messages) == 0 && s.Thread.Len() > 0 {
				// What is too large to be protected was all there was.
				failed = errors.Join(failed, errNothingLeft)
				break
			}
			if f.Tokens <= budget {
				p.CompactedTokens = f.Tokens
				f.Pinned, f.Tail, f.Proposals = v.PinnedPositions(), v.Tail, v.Proposed()
				if len(p.Drops) == 0 {
					return f, nil
				}
				if leaves == nil {
					leaves = f
				}
				break
			}
			room -= f.Tokens - budget + n*n*slackStep
		}
	}
	if leaves != nil {
		return leaves, nil
	}
	return nil, s.overBudget(budget, failed)
}

// sent is the request under the plan in force, which the provider has cached up
// to the newest messages; nil where it has not, and where it cannot be made.
func (s *State) sent() *prompt.Prompt {
	if s.Seen == nil || s.Cold {
		return nil
	}
	out, _, err := s.around(s.Current, s.Seen)
	if err != nil {
		return nil
	}
	return out
}

// overBudget lists what must stay: system, tools, calls that wait for their
// results, and the least summary of each stretch between them, which holds the
// user's words too. With so much room there is a plan.
func (s *State) overBudget(budget int, failed error) error {
	e := &BudgetError{Budget: budget, Err: failed}
	add := func(name string, tokens int) {
		if tokens > 0 {
			e.Parts = append(e.Parts, Part{name, tokens})
			e.Need += tokens
		}
	}
	add("system prompt", s.Counter.System(s.Base.System))
	add("tool definitions", s.Counter.Tools(s.Base.Tools))
	add("framing of the request", s.Fixed-e.Need)
	waits := make([]bool, s.Thread.Len())
	for i := range s.Thread.Len() {
		if s.Pairs().Open(i) {
			waits[i] = true
			for _, result := range s.Pairs().Results(i) { // of other calls of the message
				waits[result] = true
			}
		}
	}
	waiting, stretches := 0, 0
	for i := range s.Thread.Len() {
		switch {
		case waits[i]:
			waiting += s.Changed[i]
		case i == 0 || waits[i-1]:
			stretches++
		}
	}
	add("calls that wait for results", waiting)
	add("a summary of the rest", max(stretches, 1)*leastSummary)
	return e
}
