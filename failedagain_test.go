package palimpsest_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// TestFailedRepetition: what a call has given is not out of date because the same call
// failed later, or has not been answered yet, nor because an edit of the file failed. A
// failure is out of date when the call is made again, with whatever end.
func TestFailedRepetition(t *testing.T) {
	text := strings.Repeat("func price(o Order) int { return o.Cents } // the price of an order\n", 120)
	read := thread.ToolCall{ID: "first", Name: "Read", Arguments: `{"file_path":"a.go"}`}
	edit := thread.ToolCall{ID: "edit", Name: "Edit", Arguments: `{"file_path":"a.go","old_string":"x","new_string":"y"}`}
	run := thread.ToolCall{ID: "test", Name: "Bash", Arguments: `{"command":"go test ./..."}`}
	asks := func(id string, c thread.ToolCall) thread.Message {
		c.ID = id
		return thread.Message{Role: thread.Assistant, Parts: []thread.Part{c}}
	}
	gives := func(id, tool, text string, o thread.Outcome) thread.Message {
		return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: o, Content: []thread.Part{thread.Text{Text: text}}}}}
	}
	for _, tt := range []struct {
		name  string
		first thread.Message
		call  thread.ToolCall
		then  []thread.Message
		want  bool // the first result is out of date
	}{
		{"read again", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", text, thread.Success)}, true},
		{"read again in part", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", text, thread.Partial)}, true},
		{"reading again failed", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), gives("c2", "Read", "no such file", thread.Failure)}, false},
		{"reading again was aborted", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read), plain(thread.User, "Stop.")}, false},
		{"reading again is under way", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", read)}, false},
		{"edited", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", edit), gives("c2", "Edit", "ok", thread.Success)}, true},
		{"the edit failed", gives("first", "Read", text, thread.Success), read, []thread.Message{asks("c2", edit), gives("c2", "Edit", "x was not found", thread.Failure)}, false},
		{"failed twice", gives("first", "Bash", text, thread.Failure), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "FAIL", thread.Failure)}, true},
		{"failed and then passed", gives("first", "Bash", text, thread.Failure), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "ok", thread.Success)}, true},
		{"passed and then failed", gives("first", "Bash", text, thread.Success), run, []thread.Message{asks("c2", run), gives("c2", "Bash", "FAIL", thread.Failure)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := palimpsest.New(palimpsest.Config{Policy: policy.Ladder{DisableSummarization: true, DisableDropping: true}})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Session("t")
			filler := gives("filler", "Read", strings.ReplaceAll(text, "price", "weight"), thread.Success)
			log := []thread.Message{plain(thread.User, "Look."), asks("first", tt.call), tt.first, asks("filler", thread.ToolCall{Name: "Read", Arguments: `{"file_path":"b.go"}`}), filler, plain(thread.User, "Go on.")}
			step := palimpsest.Step{Budget: 3_500, Messages: append(log, tt.then...)}
			p, err := s.Compact(t.Context(), step, "")
			if err != nil {
				t.Fatal(err)
			}
			var reasons []string
			stale := false
			for _, r := range p.Since(nil) {
				why := r.Made().Reason
				reasons = append(reasons, why)
				stale = stale || strings.Contains(why, "again") || strings.Contains(why, "was changed")
			}
			if len(reasons) == 0 || stale != tt.want {
				t.Errorf("out of date: %v, want %v: %q", stale, tt.want, reasons)
			}
		})
	}
}
