package event_test

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/event"
)

func Example() {
	var counters event.Counters
	hook := event.Func(func(_ context.Context, e event.Event) {
		if e.Type == event.Completed {
			fmt.Printf("%s: %d -> %d tokens\n", e.ThreadID, e.TokensBefore, e.TokensAfter)
		}
	})
	events := event.Multi(&counters, hook)

	ctx := context.Background()
	event.Emit(ctx, events, event.Event{Type: event.CheckStarted, ThreadID: "ticket-4711", TokensBefore: 93_600, BudgetLimit: 85_000})
	event.Emit(ctx, events, event.Event{Type: event.Cleared, ThreadID: "ticket-4711", Strategy: "clear", TokensFreed: 21_500})
	event.Emit(ctx, events, event.Event{Type: event.Completed, ThreadID: "ticket-4711", TokensBefore: 93_600, TokensAfter: 72_100, TokensFreed: 21_500})

	now := counters.Figures()
	fmt.Println(now.Sum("compactions"), now.Sum("tokens_freed"), now.By("records", "strategy"))
	// Output:
	// ticket-4711: 93600 -> 72100 tokens
	// 1 21500 map[clear:1]
}
