package daemon

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestLinkResults: a result without an id answers the first call of its tool that waits, whatever else waits.
func TestLinkResults(t *testing.T) {
	call := func(n int, tool string) thread.Part {
		return thread.ToolCall{ID: thread.LocalID(n), Name: tool, Arguments: "{}"}
	}
	result := func(id, tool string) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Content: []thread.Part{thread.Text{Text: "ok"}}}}}
	}
	log, err := thread.New("t").Append(
		thread.Message{Role: thread.Assistant, Parts: []thread.Part{call(0, "a"), call(1, "b"), call(2, "a"), call(3, "b")}},
		result(thread.LocalID(0), "a"),
	)
	if err != nil {
		t.Fatal(err)
	}
	local := thread.LocalID(0)
	var got []string
	for _, m := range linkToLog(log, []thread.Message{result(local, "b"), result(local, ""), result(local, "b"), result(local, "c")}) {
		r, _ := m.Result()
		got = append(got, r.CallID)
	}
	want := []string{thread.LocalID(1), thread.LocalID(2), thread.LocalID(3), local}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("result %d answers %s, want %s", i, got[i], want[i])
		}
	}
}
