package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// shelves are the turns from one on up to another, with a call each.
func shelves(from, to int) (messages []thread.Message) {
	for n := from; n < to; n++ {
		id := fmt.Sprint("c", n)
		messages = append(messages, speak(thread.User, fmt.Sprintf("Please paint shelf %d of the shop in green.", n)),
			callTool(id, "Read", fmt.Sprintf(`{"file_path":"shelf%d.txt"}`, n), ""), answerTool(id, "Read", strings.Repeat(fmt.Sprintf("plank %d\n", n), 60)),
			speak(thread.Assistant, fmt.Sprintf("Shelf %d is painted. ", n)+strings.Repeat("It looks well. ", 30)))
	}
	return messages
}

// TestPinnedIsGoneAround: a summary of the old part leaves pinned messages where they are,
// a pinned call with its result; the model is asked for the rest once, and not again while
// nothing else is new. What is released goes into the next summary.
func TestPinnedIsGoneAround(t *testing.T) {
	for name, made := range map[string]func(*llmtest.Scripted) policy.Policy{
		"loop": func(m *llmtest.Scripted) policy.Policy {
			return policy.Loop{Model: m, ContextLimit: 9_000, MaxOutput: 1_000}
		},
		"session":    func(m *llmtest.Scripted) policy.Policy { return policy.Session{Model: m, ContextLimit: 12_000} },
		"timeline":   func(m *llmtest.Scripted) policy.Policy { return policy.Timeline{Model: m, MaxTokens: 6_000} },
		"workstream": func(m *llmtest.Scripted) policy.Policy { return policy.Workstream{Model: m, ContextSize: 9_000} },
	} {
		t.Run(name, func(t *testing.T) {
			var turns []llmtest.Turn
			for range 60 {
				switch name {
				case "session":
					turns = append(turns, llmtest.Say("#### Completed Work\nShelf 1 is painted.\nShelf 3 is painted."))
				case "workstream":
					turns = append(turns, said([]string{"Shelf 1 is painted."}, []string{"Shelf 3 is painted."}, nil, nil))
				default:
					turns = append(turns, llmtest.Say("Shelf 1 is painted.\nShelf 3 is painted."))
				}
			}
			model := llmtest.Script(turns...)
			p := made(model)
			th := threadOf(t, shelves(0, 40)...)
			first := &plan.Plan{Schema: plan.SchemaVersion, ThreadID: th.ID(), ThreadVersion: th.Version()}
			// A request, a call (of which the result stays too), a result, an answer.
			for _, i := range []int{0, 9, 18, 23} {
				first.Pinned = append(first.Pinned, th.At(i).ID)
			}
			shown := func(f *plan.Plan) {
				t.Helper()
				actions := f.Actions()
				for _, i := range []int{0, 9, 10, 17, 18, 23} {
					if got := actions[th.At(i).ID].Action; got != plan.Include {
						t.Errorf("message %d, which is pinned or of a pinned pair, is under %s", i, got)
					}
				}
				for _, i := range []int{1, 4, 16, 22} {
					if got := actions[th.At(i).ID].Action; got != plan.Summarize {
						t.Errorf("message %d is under %s", i, got)
					}
				}
			}
			s := stateOf(t, th, first)
			if due, _ := p.Due(s); !due {
				t.Fatalf("%d tokens are not due", s.PromptTokens)
			}
			f, err := p.Plan(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			shown(f.Plan)
			asked := model.Asked()
			if len(asked) == 0 {
				t.Fatal("the model was not asked")
			}
			for _, q := range asked {
				if text := q.Prompt.Messages[0].Text(); strings.Contains(text, "Shelf 5 is painted.") || strings.Contains(text, "plank 2\n") || !strings.Contains(text+asked[0].Prompt.Messages[0].Text(), "Shelf 1 is painted.") {
					t.Errorf("the model reads what stays, or not what goes:\n%.2000s", text)
				}
			}

			// Nothing but pinned messages is left before what stays.
			released := *f.Plan
			for f.Plan.ThreadVersion > 0 {
				before := len(model.Asked())
				s = stateOf(t, th, f.Plan)
				next, err := p.Plan(t.Context(), s)
				if err != nil {
					if n := len(model.Asked()) - before; n > 0 {
						t.Errorf("the model was asked %d times for nothing: %v", n, err)
					}
					break
				}
				shown(next.Plan)
				f = next
			}

			released.Pinned = released.Pinned[:3]
			longer, err := th.Append(shelves(40, 60)...)
			if err != nil {
				t.Fatal(err)
			}
			before := len(model.Asked())
			if f, err = p.Plan(t.Context(), stateOf(t, longer, &released)); err != nil {
				t.Fatal(err)
			}
			if got := f.Plan.Actions()[th.At(23).ID].Action; got != plan.Summarize {
				t.Errorf("released, and it is under %s", got)
			}
			read := false
			for _, q := range model.Asked()[before:] {
				read = read || strings.Contains(q.Prompt.Messages[0].Text(), "Shelf 5 is painted.")
			}
			if !read {
				t.Error("what is released is hidden without having been read")
			}
		})
	}
}
