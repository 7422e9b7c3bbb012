package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// TestPinnedBeyondTheBudget: where what is pinned is more than any budget leaves, the
// refusal names it with its size, and what it says is needed does; and that is looked for
// once, not once for each budget that was tried.
func TestPinnedBeyondTheBudget(t *testing.T) {
	messages := []thread.Message{said(thread.User, "Build the parser.")}
	for n := range 60 {
		messages = append(messages, said(thread.Assistant, fmt.Sprintf("Step %d: ", n)+strings.Repeat("one more rule of the parser, ", 100)), said(thread.User, fmt.Sprintf("Go on with step %d.", n)))
	}
	s := stateOf(t, "", append(messages, said(thread.Assistant, "I do."))...)
	th := s.Thread
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Counter, s.Fixed = counter, counter.Prompt(s.Base)
	for _, m := range th.All() {
		s.ChangedSizes = append(s.ChangedSizes, counter.Message(m))
		s.PromptTokens += counter.Message(m)
	}
	s.PlainSizes = s.ChangedSizes
	current := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID()}
	pinned := 0
	for i := 1; i < 100; i += 2 {
		current.Pinned = append(current.Pinned, th.At(i).ID)
	}
	for i := 1; i < 100; i += 2 {
		pinned += s.ChangedSizes[i]
	}
	s.Current, s.Summarizer, s.Window = current, &summarize.Extractive{Counter: s.Counter.Text}, pinned
	_, err = Auto{}.Plan(t.Context(), s)
	over, ok := errors.AsType[*BudgetError](err)
	if !ok {
		t.Fatal(err)
	}
	named := 0
	for _, part := range over.Parts {
		if part.Name == "pinned messages" {
			named = part.Tokens
		}
	}
	if named != pinned {
		t.Errorf("%d tokens are pinned, the refusal is: %v", pinned, over)
	}
	if _, err := Fit(t.Context(), s, "auto", strategy.Auto(), over.Need, over.Need); err != nil {
		t.Errorf("with %d tokens: %v", over.Need, err)
	}
	looks := 0
	ladder := strategy.Ladder{spy{strategy.Summarize{}, &looks}, strategy.Drop{}}
	budgets := []int{pinned / 2, pinned * 6 / 10, pinned * 7 / 10, pinned * 8 / 10}
	attempts := &fitter{situation: s, name: "auto", ladder: ladder, whole: pinned}
	for _, budget := range budgets {
		if _, err := attempts.fitFirst(t.Context(), attempts.candidates(budget)); !errors.Is(err, ErrOverBudget) {
			t.Fatal(err)
		}
	}
	tried := looks
	if tried != 0 { // no rung touches what is pinned
		t.Errorf("%d looks at the ladder for budgets that what is pinned exceeds", tried)
	}
	looks = 0
	if _, err := Fit(t.Context(), s, "auto", ladder, pinned, budgets[3]); !errors.Is(err, ErrOverBudget) {
		t.Fatal(err)
	}
	once := looks
	looks = 0
	if _, err := Fit(t.Context(), s, "auto", ladder, pinned, budgets...); !errors.Is(err, ErrOverBudget) {
		t.Fatal(err)
	}
	if once == 0 || looks > tried+once {
		t.Errorf("four budgets take %d looks at the ladder; %d to try them, %d for one with what it needs", looks, tried, once)
	}
}

// spy counts how often a rung is asked.
type spy struct {
	strategy.Strategy
	asked *int
}

func (s spy) Analyze(v *strategy.View) []strategy.Proposal {
	*s.asked++
	return s.Strategy.Analyze(v)
}
