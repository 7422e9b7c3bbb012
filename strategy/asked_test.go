package strategy

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestAskOnce: what was asked last is answered again without a summary being made; anything else is asked.
func TestAskOnce(t *testing.T) {
	counted := 0
	v := &View{Given: Given{Summarizer: &summarize.Extractive{Counter: func(s string) int { counted++; return len(s) / 4 }}}}
	said := thread.Message{ID: "m1", Role: thread.User, Turn: 1, Parts: []thread.Part{thread.Text{Text: "Please fix the queue in pkg/orders, it loses orders."}}}
	ask := func(budget int) string {
		t.Helper()
		before := counted
		out, err := askOnce(t.Context(), v, summarize.Input{Messages: []thread.Message{said}, Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if counted == before {
			return "kept " + out.CurrentTask
		}
		return "made " + out.CurrentTask
	}
	task := said.Text()
	for i, want := range []string{"made " + task, "kept " + task} {
		if got := ask(900); got != want {
			t.Errorf("%d: %q, want %q", i, got, want)
		}
	}
	if got := ask(901); got != "made "+task {
		t.Errorf("with another budget: %q", got)
	}
}
