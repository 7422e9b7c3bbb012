package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
)

// TestNewestArrivesOverHTTP: under every policy the results of the last step, which no
// model has seen yet, are in the next prompt word for word, also where they are what
// makes the compaction due; and so are the user's first words and last. F1, F4
func TestNewestArrivesOverHTTP(t *testing.T) {
	const first = "Count the boxes of all shelves, please."
	for name, p := range everyPolicy {
		step := api.Step{Window: 100_000, Output: 1_000}
		if name == "auto" || name == "notes" {
			step.Budget = 5_000
		}
		k := talking(t, palimpsest.Config{Policy: p}, step)
		news := []neutral.Message{said("user", first)}
		plans, latest := 0, first
		for n := range 24 {
			p := k.ask(news...)
			plans = p.PlanVersion
			shown := textsOf(p.Prompt.Messages)
			for _, m := range append(news, said("user", latest), said("user", first)) {
				if !strings.Contains(shown, textOf(m)) {
					t.Errorf("%s, step %d, plan %d: %.80q is not in the prompt", name, n, plans, textOf(m))
				}
			}
			if n%6 == 5 {
				k.answer(said("assistant", fmt.Sprintf("Shelf %d is counted.", n)))
				latest = fmt.Sprintf("Well done. Go on with shelf %d, and hurry.", n+1)
				news = []neutral.Message{said("user", latest)}
				continue
			}
			id := fmt.Sprint("c", n)
			k.answer(calling(id, "inspect", fmt.Sprintf(`{"shelf":%d}`, n)))
			news = []neutral.Message{resulting(id, "inspect", strings.Repeat(fmt.Sprintf("shelf %d holds box %d\n", n, n*7), 40+20*(n%3)))}
		}
		if plans == 0 {
			t.Errorf("%s: %d plans: the test shows little", name, plans)
		}
	}
}
