package llm_test

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Asking for a structured answer, and looking at how it ended.
func ExampleGenerator() {
	var g llm.Generator = llmtest.Script(llmtest.Say(`{"done": ["tests"], "open": ["release"]}`)) // or anthropic.New, openai.New

	reply, err := g.Generate(context.Background(), &prompt.Prompt{
		System:   []prompt.System{{Text: "List what is done and what is open."}},
		Messages: []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "The tests pass. We have not released."}}}},
	}, &llm.Options{
		MaxOutput: 500,
		Schema: &llm.Schema{Name: "status", JSON: `{"type": "object", "properties": {
			"done": {"type": "array", "items": {"type": "string"}},
			"open": {"type": "array", "items": {"type": "string"}}},
			"required": ["done", "open"], "additionalProperties": false}`},
	})
	switch {
	case llm.IsOverflow(err):
		fmt.Println("make it smaller")
	case err != nil:
		fmt.Println(err)
	case reply.Err() != nil:
		fmt.Println(reply.Err())
	default:
		fmt.Println(reply.JSON)
	}
	// Output: {"done": ["tests"], "open": ["release"]}
}
