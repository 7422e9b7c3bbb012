package text_test

import (
	"fmt"

	"github.com/palimpsest-ai/palimpsest/internal/text"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func Example() {
	fmt.Printf("%s", text.Encode(&prompt.Prompt{Messages: []thread.Message{
		{Role: thread.User, Turn: 1, Parts: []thread.Part{thread.Text{Text: "What is in a.txt?"}}},
		{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: "call_1", Name: "read", Arguments: `{"path":"a.txt"}`}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: "call_1", Tool: "read", Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: "=== no such file"}}}}},
	}}))
	// Output:
	// === user (turn 1)
	// What is in a.txt?
	//
	// === assistant
	//
	// ==> call read call_1
	// {"path":"a.txt"}
	//
	// ==> result read call_1 (failure)
	// \=== no such file
}
