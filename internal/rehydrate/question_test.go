package rehydrate

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func describe(hint, about string) description {
	d := description{hint: termsOf(hint), all: termsOf(about)}
	maps.Copy(d.all, d.hint)
	return d
}

// shelf is what a plan might say of its artifacts.
var shelf = []description{
	describe("read if you need the full output of Bash", "go test ./carrier/... FAIL TestRetryBackoff carrier/client_test.go:88 want 250ms, got 500ms"),
	describe("read when the price table of the Frankfurt warehouse is discussed", "Zone 1 3.90, Zone 2 4.80"),
	describe("read if you need the full output of Read", "package dispatch // worker.go type Worker struct maxAttempts int"),
	describe("read if you need the full output of Read", "package order // order.go Status pending shipped"),
	describe("", "package main // worker.go cmd/shipqd"),
}

// TestAsked: a question with two rare terms of one artifact means it. A10
func TestAsked(t *testing.T) {
	for text, want := range map[string][]int{
		"What did TestRetryBackoff in carrier/client_test.go want?":     {0},
		"what did carrier/client_test.go say about TestRetryBackoff":    {0},
		"Which rates does the Frankfurt warehouse have?":                {1},
		"Is maxAttempts of package dispatch set?":                       {2},
		"Fixed. Was it TestRetryBackoff that said 250ms? I will go on.": {0},
		"Is maxAttempts in dispatch? And the Frankfurt warehouse?":      {2, 1},

		// No question.
		"TestRetryBackoff in carrier/client_test.go wants 250ms.":  nil,
		"What I did: TestRetryBackoff in client_test.go is fixed.": nil,
		"```\nTestRetryBackoff carrier/client_test.go ok?\n```":    nil,
		// One rare term, or words that say nothing.
		"Where is TestRetryBackoff?":                               nil,
		"Should I read the full output of the tests again?":        nil,
		"Could you show me the content of the file, please?":       nil,
		"Shall I run the command and check whether it passes now?": nil,
		"Is the package in the struct of type order?":              nil,
		// Shared by several.
		"What is in worker.go?": nil,
		// Two of one and two of another: which is meant?
		"Is maxAttempts in dispatch, or in the Frankfurt warehouse?": nil,
		// Plain words of a summary alone are not enough.
		"Has the pending order been shipped?": nil,
		"":                                    nil,
	} {
		if diff := cmp.Diff(want, matchQuestions(questions(text), shelf)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// TestAskedUnrelated: everyday questions of users and agents bring nothing back,
// whatever the plan holds. A10
func TestAskedUnrelated(t *testing.T) {
	for _, text := range []string{
		"Can you add a test for that?", "Does that make sense?", "What should I do next?", "Is everything green now?",
		"Would you like me to commit these changes?", "How do I run the server locally?", "Why does it fail?",
		"Shall we refactor the handler as well?", "Could you explain the error message?", "Do you want me to proceed?",
		"What is the best way to structure this package?", "How many tests are failing at the moment?",
		"Which approach do you prefer: a new type, or a function?", "Is there anything else I should look at?",
		"Should the worker retry when the client times out?", "Have you read the whole file already?",
	} {
		if got := matchQuestions(questions(text), shelf); got != nil {
			t.Errorf("%q means %v", text, got)
		}
	}
}

// TestAskedRare: a term that many artifacts hold points to none of them.
func TestAskedRare(t *testing.T) {
	var many []description
	for i := range 20 {
		many = append(many, describe("", fmt.Sprintf("store/store.go ErrConflict line%d", i)))
	}
	if got := matchQuestions(questions("Where does store/store.go return ErrConflict?"), many); got != nil {
		t.Errorf("common terms mean %v", got)
	}
	if got := matchQuestions(questions("Where does store/store.go return ErrConflict at line7 of line7 and zone9?"), many); got != nil {
		t.Errorf("one rare term means %v", got)
	}
}

func TestIsQuestion(t *testing.T) {
	for sentence, want := range map[string]bool{
		"ok?": true, "really?)": true, "**why?**": true, "本当に？": true, "where is it": true, "Which file holds it": true,
		"": false, "?x": false, "what a day": false, "How this works": false, "see a.go?b=1 now": false,
	} {
		if got := isQuestion(sentence); got != want {
			t.Errorf("isQuestion(%q) = %v", sentence, got)
		}
	}
}

func FuzzAsked(f *testing.F) {
	f.Add("What did TestRetryBackoff in carrier/client_test.go want?")
	f.Add("```\n?\n")
	f.Add("\xff? ？x")
	f.Fuzz(func(t *testing.T, text string) {
		found := map[int]bool{}
		for _, i := range matchQuestions(questions(text), shelf) {
			if i < 0 || i >= len(shelf) || found[i] {
				t.Fatalf("%q means %d", text, i)
			}
			found[i] = true
		}
	})
}
