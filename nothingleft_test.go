package palimpsest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestSomethingIsLeft: whatever the budget, a prompt has messages; where the one
// request is too large for it, the error says so.
func TestSomethingIsLeft(t *testing.T) {
	counter := o200k(t)
	log, err := thread.New("large").Append(
		plain(thread.User, "Sort these: "+strings.Repeat("pear plum fig ", 120)),
		plain(thread.Assistant, "Fig, pear, plum. "+strings.Repeat("Sorted. ", 60)),
	)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for budget := 10; budget < 600; budget += 5 {
		for _, p := range []policy.Policy{policy.Auto{}, policy.Ladder{}} {
			c, err := palimpsest.New(palimpsest.Config{Policy: p, Counter: counter})
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprint(p.Name(), budget), func(t *testing.T) {
				res, err := c.Compact(t.Context(), palimpsest.Request{Thread: log, Budget: budget, Profile: render.For(wire.Anthropic)})
				switch {
				case errors.Is(err, palimpsest.ErrOverBudget):
					refused++
				case err != nil:
					t.Fatal(err)
				case len(res.Prompt.Messages) == 0:
					t.Errorf("%d tokens, and no message is left", budget)
				}
			})
		}
	}
	if refused == 0 {
		t.Error("every budget was met")
	}
}
