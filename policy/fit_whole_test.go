package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/strategy"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// session is a conversation of steps; each answer holds reasoning that Anthropic takes only as
// long as nothing before it has changed.
func session(t *testing.T, steps int) *policy.Situation {
	t.Helper()
	messages := []thread.Message{speak(thread.User, "Build the parser of the report, "+strings.Repeat("with all of its rules, ", 60)+"and never touch the API.")}
	for n := range steps {
		m := speak(thread.Assistant, fmt.Sprintf("Step %d of the parser is done, with %s.", n, strings.Repeat("one more rule ", 20)))
		m.Parts = slices.Insert(m.Parts, 0, thread.Part(thread.Reasoning{Source: thread.Source{API: wire.Anthropic}, Text: strings.Repeat("I weigh it. ", 40), Signature: "c2Vh"}))
		messages = append(messages, m, speak(thread.User, fmt.Sprintf("Go on with step %d.", n+1)))
	}
	th, err := thread.New("t").Append(append(messages, speak(thread.Assistant, "ok"))...)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &policy.Situation{Thread: th, Base: &prompt.Prompt{}, Counter: counter, Now: fixedNow(), Fixed: counter.Prompt(&prompt.Prompt{}), Profile: render.For(wire.Anthropic), Summarizer: &summarize.Extractive{Counter: counter.Text}}
	for _, m := range th.All() {
		bare := *m
		bare.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
		s.ChangedSizes = append(s.ChangedSizes, counter.Message(&bare))
		s.PlainSizes = append(s.PlainSizes, counter.Message(m))
	}
	return s
}

// TestBudgetBelowTheWhole: a request goes with its reasoning as it came, and without it once a
// message has changed. Every budget between the two sizes can be met too.
func TestBudgetBelowTheWhole(t *testing.T) {
	s := session(t, 30)
	whole, bare := s.UncompactedTokens(), s.Fixed
	for _, n := range s.ChangedSizes {
		bare += n
	}
	if whole < bare*5/4 {
		t.Fatalf("the request has %d tokens, %d without its reasoning", whole, bare)
	}
	for _, budget := range []int{bare - 1, bare, bare + 1, (bare + whole) / 2, whole - 1} {
		f, err := policy.Fit(t.Context(), s, "auto", strategy.Auto(), budget, budget)
		if err != nil {
			t.Errorf("%d of %d tokens: %v", budget, whole, err)
		} else if f.Tokens > budget || f.Tokens < bare/2 {
			t.Errorf("%d of %d tokens: it is %d, without reasoning %d", budget, whole, f.Tokens, bare)
		}
	}
}

// TestSomethingAskedIsLeft: a prompt that fits tells what was asked, in the user's words or in a
// summary, or it is refused; and what the refusal says is needed can be met.
func TestSomethingAskedIsLeft(t *testing.T) {
	s := session(t, 12)
	messages := s.Thread.Messages()[:2]
	for n := range 6 { // nobody says a short word
		messages = append(messages, speak(thread.User, fmt.Sprintf("Step %d: %s", n, strings.Repeat("mind one more rule, ", 40))), speak(thread.Assistant, fmt.Sprint("ok ", n)))
	}
	s.Thread, s.ChangedSizes, s.PlainSizes = threadOf(t, messages...), nil, nil
	for _, m := range s.Thread.All() {
		s.ChangedSizes, s.PlainSizes = append(s.ChangedSizes, s.Counter.Message(m)), append(s.PlainSizes, s.Counter.Message(m))
	}
	for budget := 5; budget < 700; budget += 15 {
		f, err := policy.Fit(t.Context(), s, "auto", strategy.Auto(), budget, budget)
		if over, ok := errors.AsType[*policy.BudgetError](err); ok {
			if class := event.ErrorClass(err); class != "over_budget" {
				t.Errorf("%d tokens: the class is %s", budget, class)
			}
			if over.Need <= budget {
				t.Errorf("%d tokens: refused, though %d are needed", budget, over.Need)
			}
			if _, err := policy.Fit(t.Context(), s, "auto", strategy.Auto(), over.Need, over.Need); err != nil {
				t.Errorf("%d tokens: it needs %d, and with them: %v", budget, over.Need, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		tells := slices.ContainsFunc(f.Prompt.Messages, func(m thread.Message) bool {
			return strings.Contains(m.Text(), "[Context Summary") || injected.UserWords(&m) != ""
		})
		if !tells {
			t.Errorf("%d tokens: nothing that was asked is left: %+v", budget, f.Prompt.Messages)
		}
	}
}
