package summarize

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Input is a span of messages to summarise, and its surroundings.
type Input struct {
	// Messages is the span, in thread order, with ids and turns set.
	Messages []thread.Message
	// Log is the whole log so far, whether in the span, in the prompt or left out: the
	// state of the work comes from all calls in it. Nil means that Messages follow what
	// Previous covers.
	Log []thread.Message
	// Continued says that the prompt also gets a summary of later messages, which
	// tells the state of the work instead of this one.
	Continued bool
	// Restated says that an earlier summary with a state of the work stays in the prompt:
	// the heading of this one says that it is newer.
	Restated bool
	// Previous is the summary of an earlier compaction that this one replaces:
	// its items compete for room with those of the span. May be nil.
	Previous *summary.Summary
	// Told is what a model told before of the messages in its span: it is asked about the others.
	Told summary.Summary
	// Context are the messages after the span, in order: what they deal with weighs more.
	Context []thread.Message
	// Shown are the messages that stand in the prompt beside this summary, as they stand
	// there. What they hold need not be repeated, and a request among them that is newer
	// than those of the span is the task. Nil means Context.
	Shown []thread.Message
	// Budget bounds the rendered summary, in tokens of the summarizer's counter; 0 is no
	// limit.
	Budget int
	// State leaves out what happened: the summary holds what the user said and laid down, where the
	// work and the plan stand, and what is open. Extractive alone reads it.
	State bool
	// Full fills the budget, also with lines of output that are hardly worth it. Extractive alone reads it.
	Full bool
	// StandingTokens is how many tokens what the user laid down may take beyond the budget; 0 gives it
	// three tenths of the budget.
	StandingTokens int
	// Together bounds all summaries of the prompt, this one included, in tokens: the state
	// of the work is told once and gets a share of that. Less than Budget means Budget.
	Together int
	// Sent is the conversation's last request, which its provider has cached: a summarizer
	// that asks the same model may continue it. Nil if nothing is cached. It does not change
	// what is asked.
	Sent *prompt.Prompt
	// Stands holds the sentences of the user (see Extractive.Sentences) of which somebody judged whether
	// they still hold, by their words; Changes names for a sentence the earlier one that it changes or,
	// where that does not stand, takes back. What Stands does not hold is ranked by a table; nil says that
	// nobody was asked.
	Stands  map[string]bool
	Changes map[string]string
	// Answers caches what models answered, so that no question is asked twice; nil asks
	// every time.
	Answers *llm.Answers
	// Instructions are the user's wishes for this summary, mostly empty. A model reads
	// them, and Extractive ranks what shares their words higher. They decide what is kept,
	// not what is true. InstructionsBy is whose they are: empty is the user.
	Instructions   string
	InstructionsBy thread.Role
}

// UserBeside returns, for each message of the span, the user's messages that stay in the
// prompt right before it: without them nobody sees what "Good question" answers. Of the
// messages before the whole span it returns only the last.
func (in *Input) UserBeside() [][]thread.Message {
	all := make([][]thread.Message, len(in.Messages))
	at := make(map[thread.ID]int, len(in.Messages))
	for i := range in.Messages {
		at[in.Messages[i].ID] = i
	}
	var waiting []thread.Message
	begun := false
	for i := range in.Log {
		m := &in.Log[i]
		k, inSpan := at[m.ID]
		switch {
		case inSpan:
			all[k], waiting, begun = waiting, nil, true
		case m.StartsTurn() && !begun:
			waiting = []thread.Message{*m}
		case m.StartsTurn():
			waiting = append(waiting, *m)
		}
	}
	return all
}

// Same reports whether two inputs hold the very same messages and ask for the same: a summary that no model has a part
// in is the same then. It may be false for messages that are merely equal.
func (in *Input) Same(other *Input) bool {
	a, b := *in, *other
	for _, lists := range [...][2]*[]thread.Message{{&a.Messages, &b.Messages}, {&a.Log, &b.Log}, {&a.Context, &b.Context}, {&a.Shown, &b.Shown}} {
		if (*lists[0] == nil) != (*lists[1] == nil) || !slices.EqualFunc(*lists[0], *lists[1], func(x, y thread.Message) bool { return same(&x, &y) }) {
			return false
		}
		*lists[0], *lists[1] = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// bytes is about how much text all of the input has.
func (in *Input) bytes() (n int) {
	for _, list := range [...][]thread.Message{in.Messages, in.Log, in.Context} {
		for i := range list {
			n += characters(&list[i])
		}
	}
	return n
}

// shown is what stands in the prompt beside the summary.
func (in *Input) shown() []thread.Message {
	if in.Shown == nil {
		return in.Context
	}
	return in.Shown
}

// Summarizer makes summaries. Implementations are safe for concurrent use.
type Summarizer interface {
	// Summarize returns a summary that renders to at most in.Budget tokens. The error
	// wraps ErrBudget if even the smallest does not fit; Failures lists the summarizers that
	// failed before it.
	Summarize(ctx context.Context, in Input) (Result, error)
}

// Result is a summary and how it was made.
type Result struct {
	summary.Summary
	Report Report
	// Judged says how Stands was found, where a summarizer asked for one.
	Judged Report
	// Outdated are items of the previous summary, in its words, that a model calls settled
	// or no longer true; the summary leaves them out.
	Outdated []string
}

// ErrBudget is wrapped by errors about a budget that not even the current task,
// trimmed, fits into.
var ErrBudget = errors.New("the smallest summary is over the budget")

// BudgetError says how much the smallest summary needs. It wraps ErrBudget.
type BudgetError struct {
	Need, Budget int // tokens
}

// Error names both figures.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("%v: it needs %d tokens, the budget is %d", ErrBudget, e.Need, e.Budget)
}

// Unwrap makes errors.Is(err, ErrBudget) true.
func (e *BudgetError) Unwrap() error { return ErrBudget }
