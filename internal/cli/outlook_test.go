package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// actionSums adds up the tokens of a report's records by action.
type actionSums map[string][2]int

// TestInspectSaysWhatPlanDoes: what inspect announces is what the policy auto does with that
// budget, with the counter that was named too.
func TestInspectSaysWhatPlanDoes(t *testing.T) {
	for _, args := range [][]string{
		{"../../testdata/sessions/fix-retry.claude-code.jsonl"},
		{"../../testdata/sessions/import-csv.openai-chat.json", "--counter", "chars/4"},
		{"../../testdata/sessions/small.openai-chat.json"},
	} {
		status, stdout, stderr := run(t, append([]string{"inspect", "--json"}, args...)...)
		var seen struct {
			Half struct {
				Budget  int
				After   int `json:"tokens_after"`
				Actions []struct {
					Action string
					Before int `json:"tokens_before"`
					After  int `json:"tokens_after"`
				}
				Stale int `json:"out_of_date"`
			} `json:"compaction"`
			Stale struct{ Results int } `json:"out_of_date"`
		}
		if err := json.Unmarshal([]byte(stdout), &seen); err != nil || status != exitDone {
			t.Fatalf("%v: status %d, %v: %s", args, status, err, stderr)
		}
		told := actionSums{}
		for _, a := range seen.Half.Actions {
			told[a.Action] = [2]int{a.Before, a.After}
		}

		// The command that the report for people names.
		_, text, _ := run(t, append([]string{"inspect"}, args...)...)
		_, command, _ := strings.Cut(text, "\nsee: palimpsest ")
		status, stdout, stderr = run(t, append(strings.Fields(command), "--json")...)
		var planned struct {
			Policy  string
			Budget  int
			After   int `json:"tokens_after"`
			Records []struct {
				Action string
				Before int `json:"tokens_before"`
				After  int `json:"tokens_after"`
			}
		}
		if err := json.Unmarshal([]byte(stdout), &planned); err != nil || status != exitDone {
			t.Fatalf("%s: status %d, %v: %s", command, status, err, stderr)
		}
		done := actionSums{}
		for _, r := range planned.Records {
			done[r.Action] = [2]int{done[r.Action][0] + r.Before, done[r.Action][1] + r.After}
		}
		if len(done) != len(told) || planned.Policy != "auto" || planned.Budget != seen.Half.Budget || planned.After != seen.Half.After {
			t.Errorf("%v: inspect tells %v for %d, plan does %v for %d", args, told, seen.Half.Budget, done, planned.Budget)
		}
		for action, sums := range done {
			if told[action] != sums {
				t.Errorf("%v: %s: inspect tells %v, plan does %v", args, action, told[action], sums)
			}
		}
		if seen.Half.Stale == 0 || seen.Half.Stale > seen.Stale.Results {
			t.Errorf("%v: %d of %d results that are out of date", args, seen.Half.Stale, seen.Stale.Results)
		}
	}
}

// TestInspectNamesTheRun: the command that inspect names is for the conversation that it shows.
func TestInspectNamesTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	var file strings.Builder
	for n := range 2 {
		fmt.Fprintf(&file, `{"task_id":%d,"traj":[{"role":"user","content":"Find order %d."}`, n, n)
		for step := range 30 {
			fmt.Fprintf(&file, `,{"role":"assistant","content":"Step %d. %s"},{"role":"user","content":"Go on with %d."}`, step, strings.Repeat("The order is not there. ", 40), step)
		}
		file.WriteString("]}\n")
	}
	if err := os.WriteFile("runs.jsonl", []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := run(t, "inspect", "runs.jsonl", "--run", "2"); status != exitDone || !strings.Contains(stdout, "see: palimpsest plan runs.jsonl --run 2\n") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}

// TestTooSmall: nothing is announced for a conversation that cannot become smaller.
func TestTooSmall(t *testing.T) {
	in := strings.NewReader(`{"messages":[{"role":"user","content":"hello"}]}`)
	var out, errs strings.Builder
	status := Run(t.Context(), []string{"inspect", "-"}, Streams{In: in, Out: &out, Err: &errs})
	if status != exitDone || !strings.Contains(out.String(), "it is too small to be compacted") || strings.Contains(out.String(), "see: ") {
		t.Errorf("status %d: %s%s", status, out.String(), errs.String())
	}
}

// TestDefaultBudget: without a budget, what fits the usual one becomes half of it, or what must stay; where hardly
// anything could go, it stays as it is.
func TestDefaultBudget(t *testing.T) {
	step := `,{"role":"assistant","content":"Step %d. ` + strings.Repeat("The order is not there. ", 40) + `"},{"role":"user","content":"Go on."}`
	body := func(rules, steps int) string {
		doc := fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user","content":"Find the order."}`, strings.Repeat("Look in each drawer. ", rules))
		for n := range steps {
			doc += fmt.Sprintf(step, n)
		}
		return doc + "]}"
	}
	for _, c := range []struct {
		rules, steps int
		from         string
	}{
		{0, 60, "half of it"}, {2200, 40, "what must stay of it"}, {4000, 1, "the window of its model is not known"},
	} {
		var out, errs strings.Builder
		status := Run(t.Context(), []string{"compact", "-", "--store", "memory:"}, Streams{In: strings.NewReader(body(c.rules, c.steps)), Out: &out, Err: &errs})
		if status != exitDone || !strings.Contains(errs.String(), "("+c.from+")") {
			t.Errorf("%d, %d: status %d: want %s: %s", c.rules, c.steps, status, c.from, errs.String())
		}
	}
}

// TestInspectCountsHostedCalls: calls that ran at the provider are calls, alone and with a call of the client's in
// them. G6
func TestInspectCountsHostedCalls(t *testing.T) {
	for form, row := range map[string]struct{ body, calls, tools string }{
		"anthropic": {`{"model":"claude-opus-5","max_tokens":9,"messages":[{"role":"user","content":"Count."},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"read()"}},{"type":"tool_use","id":"toolu_1","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"row"}]},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"1","stderr":"","return_code":0,"content":[]}},{"type":"text","text":"One."}]}]}`, "2 tool calls", "code_execution 1,read 1"},
		"responses": {`{"model":"gpt-5.6","input":[{"role":"user","content":"Look."},{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"bolts"}},{"type":"mcp_call","id":"mcp_1","server_label":"notes","name":"find","arguments":"{}","output":"none","error":"down"},{"role":"assistant","content":"None."}]}`, "2 tool calls", "find 1 1,web_search 1"},
	} {
		file := filepath.Join(t.TempDir(), "body.json")
		if err := os.WriteFile(file, []byte(row.body), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, out, stderr := run(t, "inspect", file); status != 0 || !strings.Contains(out, row.calls) {
			t.Errorf("%s: status %d: %s%s", form, status, out, stderr)
		}
		_, out, _ := run(t, "inspect", file, "--json")
		var got []string
		for _, tool := range gjson.Get(out, "by_tool").Array() {
			name := tool.Get("tool").Str + " " + tool.Get("calls").Raw
			if tool.Get("failed").Int() > 0 {
				name += " " + tool.Get("failed").Raw
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if strings.Join(got, ",") != row.tools {
			t.Errorf("%s: the tools are %q: %s", form, got, gjson.Get(out, "by_tool"))
		}
	}
}

// TestUnknownIsNamed: each command that reads a session names its records of types that nobody knows. G6
func TestUnknownIsNamed(t *testing.T) {
	dir := t.TempDir()
	file, made := filepath.Join(dir, "session.jsonl"), filepath.Join(dir, "plan.json")
	const lines = `{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"Count the shelves."}}
{"type":"hologram","uuid":"b","payload":{"text":"Shelf 77."}}
{"type":"assistant","uuid":"c","parentUuid":"a","sessionId":"s","message":{"role":"assistant","content":[{"type":"text","text":"I do."}]}}
`
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"inspect", file}, {"compact", file}, {"plan", file, "-o", made}, {"explain", file}, {"handoff", file}, {"lost", file}, {"diff", made, made, file}} {
		if status, out, stderr := run(t, args...); status != 0 || !strings.Contains(out+stderr, "hologram (1)") {
			t.Errorf("%s: status %d: %s%s", args[0], status, out, stderr)
		}
	}
}
