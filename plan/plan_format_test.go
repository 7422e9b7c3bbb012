package plan_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/plan/summary"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// documented is the thread and the plan of docs/formats/plan.md.
func documented(t *testing.T) (*thread.Thread, plan.Plan) {
	t.Helper()
	text := func(s string) []thread.Part { return []thread.Part{thread.Text{Text: s}} }
	call := func(id, tool, arguments string) []thread.Part {
		return []thread.Part{thread.ToolCall{ID: id, Name: tool, Arguments: arguments}}
	}
	result := func(id, tool string) []thread.Part {
		return []thread.Part{thread.ToolResult{CallID: id, Tool: tool, Outcome: thread.Success, Content: text("…")}}
	}
	th, err := thread.New("parser").Append(
		thread.Message{ID: "m1", Role: thread.User, Parts: text("Fix the parser, it fails on empty input.")},
		thread.Message{ID: "m2", Role: thread.Assistant, Parts: call("c1", "Read", `{"file_path":"parser.go"}`)},
		thread.Message{ID: "m3", Role: thread.Tool, Parts: result("c1", "Read")},
		thread.Message{ID: "m4", Role: thread.Assistant, Parts: text("Fixed.")},
		thread.Message{ID: "m5", Role: thread.User, Parts: text("Now the tests.")},
		thread.Message{ID: "m6", Role: thread.Assistant, Parts: call("c2", "Read", `{"file_path":"parser_test.go"}`)},
		thread.Message{ID: "m7", Role: thread.Tool, Parts: result("c2", "Read")},
		thread.Message{ID: "m8", Role: thread.Assistant, Parts: call("c3", "Bash", `{"command":"go test ./..."}`)},
		thread.Message{ID: "m9", Role: thread.Tool, Parts: result("c3", "Bash")},
	)
	if err != nil {
		t.Fatal(err)
	}
	return th, plan.Plan{
		ThreadID: th.ID(), ThreadVersion: th.Version(),
		CreatedAt: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
		Policy:    "auto", Counter: "o200k",
		Externalizations: []plan.Externalization{{
			Span:       th.Range(6, 7),
			ArtifactID: "art_5f1c0d3a9b7e2468",
			Summary: summary.Summary{
				Span:         th.Range(6, 7),
				ToolOutcomes: []summary.ToolOutcome{{Tool: "Read", Outcome: thread.Success, Turn: 2, Sources: []thread.ID{"m7"}}},
			},
			RehydrateHint: "read if you need the full output of Read",
			Origin:        plan.Origin{Strategy: "externalize", Reason: "2400 tokens, over the threshold of 1000", TokensBefore: 2400, TokensAfter: 90},
		}},
		Summarizations: []plan.Summarization{{
			Span: th.Range(0, 4),
			Summary: summary.Summary{
				Span:     th.Range(0, 4),
				Requests: []summary.Item{{Text: "Fix the parser, it fails on empty input.", Turn: 1, Sources: []thread.ID{"m1"}}},
				Files:    []summary.File{{Path: "parser.go", Operations: []string{"read"}, Turn: 1, Sources: []thread.ID{"m2"}}},
			},
			SummaryTokens: 55,
			Origin:        plan.Origin{Strategy: "summarize", Reason: "4 messages before the kept part", TokensBefore: 1800, TokensAfter: 70},
		}},
		Clearings: []plan.Clearing{{
			Span:            th.Range(8, 9),
			PreservedFields: thread.Fields{"exit_code": 0},
			Origin:          plan.Origin{Strategy: "clear", Reason: "older than the protected tail", TokensBefore: 600, TokensAfter: 14},
		}},
		OriginalTokens: 5200, CompactedTokens: 574,
	}
}

// TestDocumentedFormat: the example in docs/formats/plan.md is what the code
// writes, can be read back, and holds for its thread.
func TestDocumentedFormat(t *testing.T) {
	th, p := documented(t)
	if err := p.Validate(th); err != nil {
		t.Fatal(err)
	}
	want, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/formats/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/formats/plan.md has no example")
	}
	if diff := cmp.Diff(string(want)+"\n", example); diff != "" {
		t.Errorf("the example in docs/formats/plan.md (-what the code writes +what the page shows):\n%s", diff)
	}
	read, err := plan.Parse([]byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if changes := plan.Diff(&p, read); len(changes) > 0 {
		t.Errorf("the example reads as another plan: %v", changes)
	}
}
