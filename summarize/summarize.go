package summarize

import (
	"context"
	"errors"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Input is what is to be summarised.
type Input struct {
	// Messages is the span, in thread order, with ids and turns set.
	Messages []thread.Message
	// Log is all that was said so far, also what stays in the prompt, before and after
	// the span, or is put aside: where the work stands is read off the calls in all of
	// it. Nil stands for Messages after what Previous knows.
	Log []thread.Message
	// Continued says that another summary, of messages that follow, is made beside
	// this one: where the work stands is left to it.
	Continued bool
	// Restated says that an earlier summary of the prompt says where the work stood at
	// its end, and stays as it is: this one says that it is newer.
	Restated bool
	// Previous is the summary of an earlier compaction that this one replaces:
	// its items stay or compete for room like those of the span. May be nil.
	Previous *summary.Summary
	// Context is what came after the span, in order: what it is about weighs more.
	Context []thread.Message
	// Shown is what stands in the prompt beside this summary, as it stands there,
	// before, among and after the messages of the span: what it holds need not be
	// repeated, and a request in it that is newer than those of the span is the task.
	// Nil stands for Context.
	Shown []thread.Message
	// Budget is what the rendered summary may take, in tokens of the
	// summarizer's counter; 0 is no limit.
	Budget int
	// Together is what all summaries of the prompt may take, this one included, in
	// tokens: where the work stands is told once, in a share of that. What is less than
	// Budget stands for Budget.
	Together int
	// Sent is the request that the provider of the conversation has cached, but
	// for its newest messages: a summarizer that asks the same model may go on
	// from it. Nil where nothing is cached; it changes no answer.
	Sent *prompt.Prompt
	// Answers has what models said to earlier questions, so that none is asked
	// twice; nil asks every time. It changes no answer.
	Answers *llm.Answers
	// Instructions are what the user asks this summary to keep in mind, in words;
	// mostly empty. A model weighs them, and Extractive ranks what holds their
	// terms higher. They decide what is kept, and of what is true only
	// what the user said.
	Instructions string
}

// UserBeside are the user's messages that stay in the prompt, each list by the message of the
// span that it stands before: without them nobody sees what "Good question" answers. Of
// those before the span it is the last one.
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

// shown is what stands in the prompt beside the summary.
func (in *Input) shown() []thread.Message {
	if in.Shown == nil {
		return in.Context
	}
	return in.Shown
}

// Summarizer makes summaries. Implementations are safe for concurrent use.
type Summarizer interface {
	// Summarize returns a summary whose rendering takes at most in.Budget
	// tokens; an error that wraps ErrBudget says that even the least does not fit.
	// Where others failed before an error, Failures tells.
	Summarize(ctx context.Context, in Input) (Result, error)
}

// Result is a summary and how it was made.
type Result struct {
	summary.Summary
	Report Report
	// Outdated are items of the previous summary, in its words, that are settled or no
	// longer true, as a model says; the summary does not hold them.
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
