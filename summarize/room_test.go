package summarize

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestRoom: of a span with more lines than are held, those of the newest outputs can be chosen, and
// what was done and asked is known of all of it.
func TestRoom(t *testing.T) {
	messages := []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: "Look at all servers, and never restart db_main."}}}}
	for i := range 40 {
		id := fmt.Sprintf("call_%d", i)
		text := fmt.Sprintf("server_%d.go\n", i) + strings.Repeat("a.go\n", 1400)
		messages = append(messages,
			thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: fmt.Sprintf("Server %d uses pool_%d, because its cache_%d is slow.", i, i, i)}, thread.ToolCall{ID: id, Name: "Read", Arguments: fmt.Sprintf(`{"file_path":"list_%d.txt"}`, i)}}},
			thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: "Read", Content: []thread.Part{thread.Text{Text: text}}}}})
	}
	th, err := thread.New("t").Append(messages...)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{Messages: th.Messages()}
	held := 0
	for i, f := range readSpan(in, read) {
		if f.result == nil {
			continue
		}
		if f.work.Result != &f.result.Result || f.result.First != fmt.Sprintf("server_%d.go", (i-2)/2) {
			t.Errorf("message %d: the first line is %q", i, f.result.First)
		}
		if held += len(f.result.idLines); len(f.result.idLines) == 0 && i > len(in.Messages)-20 || i < 20 && len(f.result.idLines) > 0 {
			t.Errorf("message %d of %d has %d lines", i, len(in.Messages), len(f.result.idLines))
		}
	}
	if most := manyPieces + in.bytes()/bytesOfPiece; held > most || held < most-1500 {
		t.Errorf("%d lines are held", held)
	}
	var e Extractive
	made, err := e.Summarize(context.Background(), *in)
	if err != nil {
		t.Fatal(err)
	}
	if text := made.Render(); !strings.Contains(text, "never restart db_main") || !strings.Contains(text, "list_0.txt") || !strings.Contains(text, "server_39.go") || strings.Contains(text, "server_0.go") {
		t.Errorf("the summary says\n%s", text)
	}
}
