package palimpsest_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestFactBesideLargeResults: two steps that have to stay have results larger
// than the prompt. Once these are externalized there is room for a summary, so
// nothing may be dropped, and what the user said long before still stands. A21
func TestFactBesideLargeResults(t *testing.T) {
	loop := newLoop(t, o200k(t), wire.Anthropic, nil, 4500, 3000)
	edit := `{"file_path":"pkg/f1.go","edits":[{"new":"` + strings.Repeat(`a\"é `, 100) + `","n":1.50}]}`
	call := func(tool, id, arguments string) thread.Part {
		return thread.ToolCall{ID: id, Name: tool, Arguments: arguments}
	}
	result := func(tool, id string, lines int) thread.Message {
		text := strings.Repeat("2025-05-12 08:14:02 the queue holds orders that no worker has taken yet\n", lines)
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	loop.append(plain(thread.User, "Tidy the queue, step by step."), plain(thread.User, planted[0]),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call("Read", "old", edit), call("Read", "older", edit)}})
	for range 6 {
		loop.append(thread.Message{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Media{Type: thread.Image, MIME: "image/png",
			Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}})
	}
	loop.append(plain(thread.User, planted[1]),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{thread.Text{Text: strings.Repeat("líne of pröse 漢字 👩\u200d👩\u200d👧 e\u0301 \n", 2)}, call("unknown_tool", "a", edit)}}, result("unknown_tool", "a", 311),
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call("Read", "b", `{"file_path":"b"}`), call("WebFetch", "open", `{"file_path":"c"}`), call("WebFetch", "d", `{"file_path":"d"}`)}},
		result("Read", "b", 206), result("WebFetch", "d", 0))
	res, compacted, err := loop.try()
	if err != nil || !compacted {
		t.Fatal(compacted, err)
	}
	if !strings.Contains(said(res.Prompt), planted[0]) {
		t.Errorf("%d summaries, %d drops, %d tokens: lost %q", len(res.Plan.Summarizations), len(res.Plan.Drops), res.After, planted[0])
	}
}
