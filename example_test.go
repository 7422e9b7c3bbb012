package palimpsest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// An agent loop calls PrepareStep before each model call and FinishStep after.
func Example() {
	ctx, model, file := setup()            // the client is yours: llm/anthropic, llm/openai or any other
	db, err := sqlite.Open(ctx, file, nil) // or postgres.Open; without a store, memory
	must(err)
	defer db.Close()
	c, err := palimpsest.New(palimpsest.Config{Model: "claude-haiku-4-5", Store: db.Tenant(""), Recall: &palimpsest.Recall{}})
	must(err)
	s := c.Session("ticket-4711") // a new conversation, or one of an earlier process
	step := palimpsest.Step{
		Base:    &prompt.Prompt{System: []prompt.System{{Text: "You tidy code."}}, Tools: readTool},
		Profile: render.For(wire.Anthropic),
		Window:  40_000, Output: 8_000, // or nothing: the model's
		Messages: []thread.Message{thread.NewMessage(thread.User, "Tidy the queue.")},
	}
	for len(step.Messages) > 0 {
		p, err := s.PrepareStep(ctx, step) // adds what is new, compacts when it is due
		must(err)
		reply, err := model.Generate(ctx, p.Prompt, nil)
		if palimpsest.IsOverflow(err) {
			p, err = s.Overflowed(ctx, p, err) // compacts harder
			must(err)
			reply, err = model.Generate(ctx, p.Prompt, nil)
		}
		must(err)
		must(s.FinishStep(ctx, p, reply.Usage, reply.Message))
		step.Messages = nil
		for _, call := range reply.Message.Calls() { // none: it is done
			result, ok, err := s.Answer(ctx, p, call) // of read_artifact and recall
			must(err)
			if !ok {
				result = thread.NewResult(call, thread.Success, runTool(call))
			}
			step.Messages = append(step.Messages, result)
		}
	}
	plans, err := s.Plans(ctx)
	must(err)
	fmt.Println("compacted", len(plans), "times")
	// Output:
	// compacted 4 times
}

// reader stands for a model: it reads twenty files, one a step, and is done. Its
// provider refuses the seventh request as too long, once.
type reader struct{ asked, step int }

func (*reader) Model() string { return "reader" }

func (r *reader) Generate(context.Context, *prompt.Prompt, *llm.Options) (*llm.Reply, error) {
	if r.asked++; r.asked == 7 {
		return nil, &llm.APIError{Kind: llm.ErrOverflow}
	}
	if r.step++; r.step > 20 {
		return &llm.Reply{Message: thread.NewMessage(thread.Assistant, "All files are tidy.")}, nil
	}
	call := thread.ToolCall{ID: fmt.Sprint("call_", r.step), Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"queue/%d.go"}`, r.step)}
	return &llm.Reply{Message: thread.Message{Role: thread.Assistant, Parts: []thread.Part{call}}}, nil
}

// setup stands for what a program has: a model client and a file for what is kept.
func setup() (context.Context, llm.Generator, string) {
	dir, err := os.MkdirTemp("", "palimpsest")
	must(err)
	return context.Background(), &reader{}, filepath.Join(dir, "sessions.db")
}

// readTool is what the model is told of the agent's tool, and runTool the tool.
var readTool = []prompt.Tool{{Name: "Read", Description: "Reads a file.", Schema: `{"type":"object","properties":{"file_path":{"type":"string"}}}`}}

func runTool(thread.ToolCall) string {
	return strings.Repeat("func handle(order Order) error { return nil }\n", 300)
}

// must stands for a program's way with errors.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
