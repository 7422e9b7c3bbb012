package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/thread"
)

// Same fails the test when two threads do not hold the same messages.
func Same(t testing.TB, got, want *thread.Thread) {
	t.Helper()
	equal := cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}
	if got.Len() != want.Len() || got.Turns() != want.Turns() || got.ID() != want.ID() {
		t.Fatalf("thread %s of %d messages and %d turns, want %s, %d and %d", got.ID(), got.Len(), got.Turns(), want.ID(), want.Len(), want.Turns())
	}
	for i := range want.Len() {
		if diff := cmp.Diff(want.At(i), got.At(i), equal); diff != "" {
			t.Fatalf("message %d differs (-want +got):\n%s", i, diff)
		}
		if i > 0 {
			together := want.At(i).Frame != nil && want.At(i).Frame == want.At(i-1).Frame
			if (got.At(i).Frame != nil && got.At(i).Frame == got.At(i-1).Frame) != together {
				t.Fatalf("message %d: shares the frame of the one before: want %v", i, together)
			}
		}
	}
}

// everything is one message of each kind, and texts that databases and JSON like
// to change.
func everything() []thread.Message {
	at := time.Date(2025, 3, 4, 5, 6, 7, 89, time.FixedZone("", 3600))
	frame := thread.NewFrame("anthropic", `{"role":"user","content":[1,2]}`, 4, 1, 2)
	source := thread.Source{API: "anthropic", Raw: ` { "type" : "text" } `, Cache: "5m"}
	texts := []string{
		"", "plain", "ends with \n", "\r\n\t", "zero \x00 byte", "not UTF-8 \xff\xfe", "\ufffd", "\u2028\u2029<>&", "\U0001f600",
		"'; DROP TABLE messages; --", `{"a":1}`, strings.Repeat("long ", 5000),
	}
	all := []thread.Message{
		{Role: thread.System, Name: "me", Time: at, Parts: []thread.Part{thread.Text{Text: "be brief", Source: source}}},
		{Role: thread.User, Kind: thread.Injected, Parts: []thread.Part{thread.Text{Text: "reminder"}}},
		{Role: thread.User, Kind: thread.Recap, Parts: nil},
		{ID: "brought by the caller", Role: thread.User, Parts: []thread.Part{
			thread.Media{Type: thread.Image, MIME: "image/png", Name: "a.png", Detail: "low", Data: "aGk=", Source: source},
			thread.Media{Type: thread.Document, URL: "https://example.com/x.pdf", FileID: "f", Text: "inside"},
		}},
		{Role: thread.Assistant, Parts: []thread.Part{
			thread.Reasoning{Text: "hm", Signature: "sig", Source: source},
			thread.ToolCall{ID: "c1", Name: "read", Arguments: `{"path": "a" }`, Type: "custom", Signature: "s", Source: source},
			thread.ToolCall{ID: "c2", Name: "read", Arguments: "not JSON \xff"},
			thread.Opaque{Kind: "server_tool_use", Text: "search", Source: source},
		}},
		{Role: thread.Tool, Frame: frame, Index: 0, Parts: []thread.Part{thread.ToolResult{
			CallID: "c1", Tool: "read", Outcome: thread.Partial, Structured: `{"n": 1}`, Durability: thread.Replayable,
			Content:     []thread.Part{thread.Text{Text: "result", Source: source}, thread.Media{Type: thread.Image, FileID: "f2"}, thread.Opaque{Kind: "x", Source: thread.Source{Raw: "{}"}}},
			KeyFields:   thread.Fields{"n": 1.0, "big": math.MaxInt64, "f": 0.25, "s": "x", "b": true, "nil": nil, "list": []any{"a", 2.0}, "map": map[string]any{"k": "v"}},
			Determinism: &thread.Determinism{ContentHash: "h", ETag: "e", MTime: 1234.5, Version: "v"},
			Started:     at, Completed: at.Add(time.Second), Source: source,
		}}},
		{Role: thread.Tool, Frame: frame, Index: 1, Parts: []thread.Part{thread.ToolResult{CallID: "c2", Tool: "read", Outcome: thread.Failure}}},
		{Role: thread.Tool, Frame: thread.NewFrame("anthropic", frame.Raw(), 0, 0, 0), Parts: []thread.Part{thread.ToolResult{CallID: "c9"}}},
	}
	for n, text := range texts {
		m := say(thread.User, text)
		m.Name = fmt.Sprint("writer ", n)
		all = append(all, m)
	}
	return all
}
