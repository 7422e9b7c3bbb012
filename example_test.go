package palimpsest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// ask stands for your model client: it reads ten files, one a step, and is
// done.
func ask(step int, p *prompt.Prompt) (reply thread.Message, done bool) {
	if step == 10 {
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: "All ten files are tidy."}}}, true
	}
	arguments := fmt.Sprintf(`{"file_path":"queue/%d.go"}`, step)
	return thread.Message{Role: thread.Assistant, Parts: []thread.Part{
		thread.ToolCall{ID: fmt.Sprint("call_", step), Name: "Read", Arguments: arguments},
	}}, false
}

// runTools stands for your tools.
func runTools(reply thread.Message) []thread.Message {
	var results []thread.Message
	for _, c := range reply.Calls() {
		text := strings.Repeat("func handle(order Order) error { return nil }\n", 100)
		results = append(results, thread.Message{Role: thread.Tool, Parts: []thread.Part{
			thread.ToolResult{CallID: c.ID, Tool: c.Name, Content: []thread.Part{thread.Text{Text: text}}},
		}})
	}
	return results
}

// An agent loop calls PrepareStep before each model call and FinishStep after.
func Example() {
	ctx := context.Background()
	c, err := palimpsest.New(palimpsest.Config{})
	if err != nil {
		panic(err)
	}
	th := c.Thread("ticket-4711")
	step := palimpsest.Step{Profile: render.For(wire.Anthropic), Budget: 6000}
	step.Messages = []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Tidy the queue."}}}}
	for n, done := 0, false; !done; n++ {
		p, err := th.PrepareStep(ctx, step)
		if err != nil {
			panic(err)
		}
		var reply thread.Message
		reply, done = ask(n, p)
		if err := th.FinishStep(ctx, reply); err != nil {
			panic(err)
		}
		step.Messages = runTools(reply)
	}
	plans, err := th.Plans(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println("compacted", len(plans), "times")
	// Output:
	// compacted 2 times
}
