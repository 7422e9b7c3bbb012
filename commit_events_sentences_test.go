package palimpsest_test

import (
	"slices"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// TestSentencesOfPlans: what a model said for a plan that another writer was faster than is counted with no plan. A24
func TestSentencesOfPlans(t *testing.T) {
	r, told, counters := &racing{}, &recorder{}, &event.Counters{}
	model := llmtest.Script(slices.Repeat([]llmtest.Turn{llmtest.Say("The queue was read. There were 987654 orders.")}, 40)...)
	c, err := palimpsest.New(palimpsest.Config{
		Store: store.Tenant{Log: r, Plans: r}, Events: event.Multi(told, counters), Policy: policy.Loop{Model: model, ContextLimit: loopBudget + 1000, MaxOutput: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	longLoop(t, c)
	if told.count(event.PlanConflict) != 1 || told.count(event.Asked) != told.count(event.Completed)+1 {
		t.Fatalf("%d conflicts, asked %d times for %d plans", told.count(event.PlanConflict), told.count(event.Asked), told.count(event.Completed))
	}
	if plans := told.count(event.Completed); counters.Figures().Sum("summary_sentences") != float64(2*plans) || counters.Figures().Sum("summary_left_out") != float64(plans) {
		t.Errorf("%d plans: %v sentences, %v of them left out", plans, counters.Figures().Sum("summary_sentences"), counters.Figures().Sum("summary_left_out"))
	}
}
