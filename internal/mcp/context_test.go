package mcp_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/mcp"
	"github.com/palimpsest-ai/palimpsest/internal/notes"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestContextTools: with the option a model notes things, and its notes are what the calls in the
// session's record say; without it the tools are not there. No client is compacted this way, and the
// tool says so.
func TestContextTools(t *testing.T) {
	h := &held{}
	c := h.add(t, "s1", "Which queue?", "> The one of Go.", "$ ok")
	off := client(t, mcp.New(h, nil), false)
	listed, err := off.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range listed.Tools {
		if notes.IsTool(tool.Name) {
			t.Errorf("%s is offered", tool.Name)
		}
	}
	on := client(t, mcp.New(h, &mcp.Options{ContextTools: true}), true)
	id := string(c.Log.At(1).ID)
	first := map[string]any{"action": "write", "text": "Rabbit was ruled out: no delays.", "cites": []string{id}}
	said := answered(t, on, "context_note", first)
	if again := answered(t, on, "context_note", first); !strings.HasPrefix(said, "Noted as n") || again != said {
		t.Errorf("%q, then %q", said, again)
	}
	for _, tt := range []struct {
		tool      string
		arguments map[string]any
		says      string
	}{
		{"context_note", map[string]any{"action": "write", "text": "x", "cites": []string{"msg_of_nobody"}}, "nothing here has the id"},
		{"context_note", map[string]any{"action": "write", "text": strings.Repeat("x", 401)}, "at most 400"},
		{"context_note", map[string]any{"action": "list"}, "session: want the id"},
		{"compact_now", map[string]any{}, "cannot be compacted"},
		{"context_status", map[string]any{"session": "nobody"}, "no session"},
	} {
		if text, failed := ask(t, on, tt.tool, tt.arguments); !failed || !strings.Contains(text, tt.says) {
			t.Errorf("%s %v: %s", tt.tool, tt.arguments, text)
		}
	}
	// The agent writes the call and its answer into the session's record, under its own name for it.
	log, err := c.Log.Append(noted("mcp__palimpsest__context_note", "c1", `{"action":"write","text":"Rabbit was ruled out: no delays.","cites":["`+id+`"]}`, said)...)
	if err != nil {
		t.Fatal(err)
	}
	c.Log = log
	holds(t, answered(t, on, "context_note", map[string]any{"action": "list", "session": "s1"}), "Rabbit was ruled out: no delays. ["+id+"]")
	holds(t, answered(t, on, "context_status", map[string]any{"session": "s1"}), "session: s1", "notes: 1 of 40", "removed so far: nothing", "only your client knows")
}

// noted is a call of a tool and what it was answered.
func noted(tool, id, arguments, answer string) []thread.Message {
	return []thread.Message{
		{Role: thread.Assistant, Parts: []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}},
		{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: answer}}}}},
	}
}
