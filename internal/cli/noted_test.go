package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// noteLines are a call of the note tool in a transcript of Claude Code, and its answer.
func noteLines(id, name, input, answer string) []string {
	return []string{
		fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":"I note it."},{"type":"tool_use","id":%q,"name":%q,"input":%s}]}}`, id, name, input),
		fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":%q,"content":[{"type":"text","text":%q}]}]}}`, id, answer),
	}
}

// TestStatuslineNotes: notes that the model wrote are counted, from before a compaction too; what was
// removed, refused or written by a sub-agent is not, nor what a tool prints.
func TestStatuslineNotes(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	const tool = "mcp__palimpsest__context_note"
	first := noteLines("a", tool, `{"action":"write","text":"The spare key hangs behind shelf 9."}`, "Noted as n1. 1 note of 40.")
	second := noteLines("b", tool, `{"action":"write","text":"Mira is ill."}`, "Noted as n2. 2 notes of 40.")
	for name, tt := range map[string]struct {
		lines []string
		want  string
	}{
		"two":         {append(append(first, boundary), second...), "2 notes"},
		"one removed": {append(append(first, second...), noteLines("c", tool, `{"action":"remove","id":"n1"}`, "Removed.")...), "1 note (~"},
		"refused":     {noteLines("a", tool, `{"action":"write","text":"x"}`, "Error: the book of notes is full"), ""},
		"a sub-agent": {[]string{strings.Replace(first[0], "{", `{"isSidechain":true,`, 1), strings.Replace(first[1], "{", `{"isSidechain":true,`, 1)}, ""},
		"printed":     {noteLines("a", "Bash", `{"command":"echo context_note"}`, "Noted as n1. 1 note of 40."), ""},
		"cut":         {first[1:], ""},
		"none":        {nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, []byte(strings.Join(tt.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, out, errs := runOn(t, fmt.Sprintf(`{"transcript_path":%q,"model":{"display_name":"Opus"}}`, path), "statusline")
		if tt.want == "" && strings.Contains(out, "note") || !strings.Contains(out, tt.want) || errs != "" {
			t.Errorf("%s: %q, want %q; %s", name, out, tt.want, errs)
		}
	}
}

// TestRunNotes: with context tools the model is offered them, and the last line says how many notes it wrote.
func TestRunNotes(t *testing.T) {
	for _, on := range []bool{true, false} {
		up := proxytest.New(t)
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			if !on || q.N > 1 {
				return proxytest.Answer{Text: "ok"}
			}
			return proxytest.Answer{Calls: []thread.ToolCall{{ID: "ours_1", Name: "context_note", Arguments: `{"action":"write","text":"The valve is shut."}`}}}
		}
		t.Setenv("PALIMPSEST_TEST_AGENT", "ask")
		var out, errs bytes.Buffer
		args := []string{"run", fmt.Sprintf("--context-tools=%t", on), "--policy", "notes", "--window", "20k", "--anthropic-upstream", up.URL, "--", os.Args[0], "-test.run=TestAsAgent"}
		if status := Run(context.Background(), args, Streams{In: strings.NewReader("hello"), Out: &out, Err: &oneByOne{w: &errs}}); status != 7 {
			t.Fatalf("status %d: %s", status, errs.String())
		}
		if got := strings.Contains(errs.String(), ", 1 compaction, ~10k until it compacts, 1 note (~30 tokens) of the model\n"); got != on {
			t.Errorf("on: %v: %s", on, errs.String())
		}
		offered := false
		for _, q := range up.Requests() {
			offered = offered || strings.Contains(string(q.Body), "context_note")
		}
		if offered != on {
			t.Errorf("on: %v, offered: %v", on, offered)
		}
	}
}
