package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
)

// TestHostedCalls: a conversation whose programs run at the provider and call the client's tools
// can be compacted by every policy, and what still runs is sent as it was.
func TestHostedCalls(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"messages": hostedMessages(40), "responses": hostedResponses(40)} {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, api, list string }{
		{filepath.Join(dir, "messages.json"), "anthropic", "messages"},
		{filepath.Join(dir, "responses.json"), "responses", "input"},
	} {
		compactHosted(t, c.file, c.api, c.list, 5, 6_000)
	}
}

// TestHostedCases: the same over requests that were written elsewhere.
func TestHostedCases(t *testing.T) {
	dir := corpus.Dir(t, "cases/providers")
	for _, c := range []struct {
		file, api, list string
		running         int
	}{
		{"anthropic-caller/closed.json", "anthropic", "messages", 0},
		{"anthropic-caller/open.json", "anthropic", "messages", 4},
		{"anthropic-caller/pause-turn.json", "anthropic", "messages", 0},
		{"ptc/closed.json", "responses", "input", 0},
		{"ptc/open.json", "responses", "input", 7},
	} {
		for _, budget := range []int{1_500, 1_200, 900} {
			compactHosted(t, filepath.Join(dir, c.file), c.api, c.list, c.running, budget)
		}
	}
	for file, rule := range map[string]string{"dangling.json": "(caller)", "text-beside.json": "(caller-results)"} {
		if status, _, stderr := run(t, "check", filepath.Join(dir, "anthropic-caller", file), "--to", "anthropic"); status != 4 {
			t.Errorf("%s: status %d, %s; want 4 for the rule %s", file, status, stderr, rule)
		}
	}
	if status, _, stderr := run(t, "check", filepath.Join(dir, "toolsets/browser.json"), "--to", "anthropic"); status != 0 {
		t.Errorf("toolsets: status %d, %s", status, stderr)
	}
}

// TestReasoningCases: requests of servers that demand the model's reasoning on what it says are taken by check, and
// what comes out of a compaction still has that of the loop that runs.
func TestReasoningCases(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t, "cases/providers"), "reasoning-content")
	for _, member := range []string{"reasoning", "reasoning_content", "reasoning_details"} {
		for _, kind := range []string{"loop", "turns"} {
			file := filepath.Join(dir, member+"-"+kind+".json")
			if status, _, stderr := run(t, "check", file, "--to", "openai"); status != 0 {
				t.Errorf("%s: status %d, %s", file, status, stderr)
			}
			for _, budget := range []string{"4000", "2500"} {
				out := filepath.Join(t.TempDir(), "out.json")
				if status, _, stderr := run(t, "compact", file, "--to", "openai", "--budget", budget, "--store", "memory:", "-o", out); status != 0 {
					t.Errorf("%s at %s: status %d, %s", file, budget, status, stderr)
					continue
				}
				if status, _, stderr := run(t, "check", out, "--to", "openai"); status != 0 {
					t.Errorf("%s at %s: what came out is refused: %s", file, budget, stderr)
				}
				for _, element := range elements(t, out, "messages") {
					m, _ := element.(map[string]any)
					if m["role"] == "assistant" && m["tool_calls"] != nil && m[member] == nil {
						t.Errorf("%s at %s: a call has no %s: %v", file, budget, member, m)
					}
				}
			}
		}
	}
}

// compactHosted compacts a request by each policy; the last `running` elements of its list are of
// a call that still runs.
func compactHosted(t *testing.T, file, api, list string, running, budget int) {
	t.Helper()
	whole := elements(t, file, list)
	for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream", "loop", "last-turns:3"} {
		out := filepath.Join(t.TempDir(), "out.json")
		status, _, stderr := run(t, "compact", file, "--from", api, "--to", api, "--policy", policy, "--budget", fmt.Sprint(budget), "--store", t.TempDir(), "-o", out)
		if status != 0 && status != 3 {
			t.Errorf("%s, %s at %d: status %d: %s", file, policy, budget, status, stderr)
			continue
		}
		if _, err := os.Stat(out); status == 3 && err != nil {
			continue // the policy's own rules keep more than the budget
		}
		if status, _, stderr := run(t, "check", out, "--to", api); status != 0 {
			t.Errorf("%s, %s at %d: what came out is refused: %s", file, policy, budget, stderr)
		}
		got := elements(t, out, list)
		if len(got) >= len(whole) {
			t.Errorf("%s, %s at %d: nothing was compacted", file, policy, budget)
			continue
		}
		for n := 1; n <= running; n++ {
			if got, want := got[len(got)-n], whole[len(whole)-n]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s at %d: of the running call\n%v\nbecame\n%v", file, policy, budget, want, got)
			}
		}
	}
}

// elements are those of a list in a request, without cache marks.
func elements(t *testing.T, file, list string) []any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	all, _ := body[list].([]any)
	var unmark func(v any)
	unmark = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			delete(v, "cache_control")
			for _, inner := range v {
				unmark(inner)
			}
		case []any:
			for _, inner := range v {
				unmark(inner)
			}
		}
	}
	unmark(all)
	return all
}

// shelfRows are the lines of a result.
func shelfRows(n int) string { return strings.Repeat(fmt.Sprintf("row of shelf %d;", n), 60) }

// hostedMessages is a request of n programs, of which the last still waits for its second call.
func hostedMessages(n int) string {
	list := []string{`{"role":"user","content":"Count the shelves. Leave shelf 9 out."}`}
	for i := range n {
		list = append(list,
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Shelf %d."},{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"code_execution","input":{"code":"count(%[1]d)"}},{"type":"tool_use","id":"toolu_a%[1]d","name":"shelf","input":{"n":%[1]d},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_%[1]d"}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_a%d","content":%q}]}`, i, shelfRows(i)),
			fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_b%d","name":"shelf","input":{"n":%[1]d},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_%[1]d"}}]}`, i),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_b%d","content":%q}]}`, i, shelfRows(i)))
		if i < n-1 {
			list = append(list,
				fmt.Sprintf(`{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_%d","content":{"type":"code_execution_result","stdout":"%[1]d rows","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"Shelf %[1]d is counted: %[2]s"}]}`, i, shelfRows(i)),
				`{"role":"user","content":"On to the next."}`)
		}
	}
	return `{"model":"claude-opus-5","max_tokens":1000,"tools":[{"type":"code_execution_20260120","name":"code_execution"},{"name":"shelf","input_schema":{"type":"object"}}],"messages":[` + strings.Join(list, ",") + `]}`
}

// hostedResponses is the same for the Responses API; the last program waits for its result.
func hostedResponses(n int) string {
	list := []string{`{"role":"user","content":"Count the shelves. Leave shelf 9 out."}`}
	for i := range n {
		list = append(list,
			fmt.Sprintf(`{"type":"program","id":"prog_%d","call_id":"call_%[1]d","code":"count(%[1]d)","fingerprint":"f"}`, i),
			fmt.Sprintf(`{"type":"function_call","id":"fc_a%d","call_id":"call_a%[1]d","name":"shelf","arguments":"{\"n\":%[1]d}","caller":{"type":"program","caller_id":"call_%[1]d"}}`, i),
			fmt.Sprintf(`{"type":"function_call","id":"fc_b%d","call_id":"call_b%[1]d","name":"shelf","arguments":"{\"n\":%[1]d}","caller":{"type":"program","caller_id":"call_%[1]d"}}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_a%d","output":%q}`, i, shelfRows(i)),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_b%d","output":%q}`, i, shelfRows(i)))
		if i < n-1 {
			list = append(list,
				fmt.Sprintf(`{"type":"program_output","id":"po_%d","call_id":"call_%[1]d","result":"%[1]d rows"}`, i),
				fmt.Sprintf(`{"type":"message","role":"assistant","id":"msg_%d","status":"completed","content":[{"type":"output_text","text":"Shelf %[1]d is counted: %[2]s","annotations":[]}]}`, i, shelfRows(i)),
				`{"role":"user","content":"On to the next."}`)
		}
	}
	return `{"model":"gpt-5.5","tools":[{"type":"programmatic_tool_calling"},{"type":"function","name":"shelf","parameters":{"type":"object"}}],"input":[` + strings.Join(list, ",") + `]}`
}
