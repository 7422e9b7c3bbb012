package quality_test

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/quality"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func Example() {
	ctx := context.Background()
	m := quality.New("ticket-4711", &quality.Options{
		Events: event.Func(func(_ context.Context, e event.Event) { fmt.Println(e.Type, e.Details["class"]) }),
	})
	th, err := thread.New("ticket-4711").Append(
		thread.Message{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Find a hotel for 150 a night at most."}}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Message(ctx, *th.At(0))

	p := &plan.Plan{}
	p.Add(plan.Removal{Span: th.Range(0, 1)})
	m.Compacted(th, p)

	m.Message(ctx, thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "What was the user's budget again?"}}})
	fmt.Println(m.Metrics().AgentAskedForContext)
	// Output:
	// context_requested asked_again
	// true
}
