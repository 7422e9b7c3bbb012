package token

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func TestBudgetFormula(t *testing.T) { // A12
	for _, k := range []struct {
		name   string
		budget Budget
		want   int
	}{
		{"defaults", Budget{}, 85_000 - 500 - 2_000},
		{"all set", Budget{MaxInput: 50_000, Soft: 0.5, System: 100, ToolSchemas: 200, Formatting: 30, Safety: 4, RehydrationReserve: 5}, 25_000 - 339},
		{"the product is cut, not rounded", Budget{MaxInput: 999, Soft: 0.999, Safety: -1, RehydrationReserve: -1}, 998},
		{"negative means none", Budget{MaxInput: 1000, Soft: 1, Safety: -1, RehydrationReserve: -1}, 1000},
		{"more than there is", Budget{MaxInput: 1000, System: 5000}, 850 - 5000 - 500 - 2000},
	} {
		if got := k.budget.Available(); got != k.want {
			t.Errorf("%s: %d tokens available, want %d", k.name, got, k.want)
		}
	}
	want := Budget{MaxInput: 100_000, Soft: 0.85, Safety: 500, RehydrationReserve: 2_000, MaxRehydrated: 3}
	if diff := cmp.Diff(want, Budget{}.Resolved()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// A prompt keeps to a budget exactly when its messages fit what is
// available.
func TestMeasuredBudget(t *testing.T) { // A12
	c := counter(t, "o200k")
	p := &prompt.Prompt{
		System:   []prompt.System{{Text: "Be brief."}},
		Tools:    []prompt.Tool{{Name: "read", Schema: `{"type":"object"}`}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Where is the reader?"}}}},
	}
	total, message := c.Prompt(p), c.Message(&p.Messages[0])
	for _, room := range []int{-1, 0, 1} {
		b := Budget{MaxInput: total + room, Soft: 1, System: c.System(p.System), ToolSchemas: c.Tools(p.Tools), Formatting: c.Overhead(), Safety: -1, RehydrationReserve: -1}
		if got := b.Available() - message; got != room {
			t.Errorf("with room for %d more tokens the budget has %d", room, got)
		}
	}
}
