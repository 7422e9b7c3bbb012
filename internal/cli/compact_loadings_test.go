package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLoadingsStand: of a tool that is loaded again and again the last loading stays, in each form that APIs have
// for it, under every policy; another tool that was loaded once stays too. G3
func TestLoadingsStand(t *testing.T) {
	const answer = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q,"annotations":[]}]},{"role":"user","content":"Shelf %d?"}`
	const responses = `{"model":"gpt-5.6","tools":[{"type":"tool_search"}],"input":[{"role":"user","content":"Count."},%s]}`
	const said = `{"role":"assistant","content":%q},{"role":"user","content":"Shelf %d?"}`
	const messages = `{"model":"claude-opus-5","max_tokens":9,"tools":[{"name":"find","input_schema":{"type":"object"}},{"name":"weigh","defer_loading":true,"input_schema":{"type":"object"}},{"name":"paint","defer_loading":true,"input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Count."},%s]}`
	for _, c := range []struct{ api, body, load, answer string }{
		{"anthropic", messages, `{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_$n","name":"tool_search_tool_regex","input":{}},{"type":"tool_search_tool_result","tool_use_id":"srvtoolu_$n","content":{"type":"tool_search_tool_search_result","tool_references":[{"type":"tool_reference","tool_name":"$t"}]}}]},{"role":"user","content":"And?"}`, said},
		{"anthropic", messages, `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_$n","name":"find","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_$n","content":[{"type":"tool_reference","tool_name":"$t"}]}]}`, said},
		{"responses", responses, `{"type":"tool_search_call","execution":"client","call_id":"call_$n","arguments":{},"status":"completed"},{"type":"tool_search_output","execution":"client","call_id":"call_$n","status":"completed","tools":[{"type":"function","tool_name":"$t","name":"$t","parameters":{}}]}`, answer},
		{"responses", responses, `{"type":"tool_search_call","id":"ts_$n","execution":"server","call_id":null,"arguments":{},"status":"completed"},{"type":"tool_search_output","id":"to_$n","execution":"server","call_id":null,"status":"completed","tools":[{"type":"function","tool_name":"$t","name":"$t","parameters":{}}]}`, answer},
	} {
		var list []string
		for i := range 14 {
			tool := "weigh"
			if i == 2 {
				tool = "paint"
			}
			if i < 9 {
				list = append(list, strings.NewReplacer("$n", fmt.Sprint(i), "$t", tool).Replace(c.load))
			}
			list = append(list, fmt.Sprintf(c.answer, strings.Repeat(fmt.Sprintf("kelp%d ", i), 100), i))
		}
		in, out := filepath.Join(t.TempDir(), "in.json"), filepath.Join(t.TempDir(), "out.json")
		if err := os.WriteFile(in, fmt.Appendf(nil, c.body, strings.Join(list, ",")), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, policy := range []string{"auto", "notes", "ladder", "session", "timeline", "workstream"} {
			if status, _, stderr := run(t, "compact", in, "--from", c.api, "--to", c.api, "--policy", policy, "--budget", "2500", "--store", "memory:", "-o", out); status == 3 {
				continue // the policy's own rules keep more than the budget
			} else if status != 0 {
				t.Fatalf("%s, %s: status %d: %s", c.load, policy, status, stderr)
			}
			if status, _, stderr := run(t, "check", out, "--to", c.api); status != 0 {
				t.Errorf("%s, %s: what came out is refused: %s", c.load, policy, stderr)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"weigh", "paint"} {
				if n := strings.Count(string(data), `"tool_name":"`+tool+`"`); n != 1 && (n == 0 || policy != "notes") { // it keeps more whole
					t.Errorf("%s, %s: %s is loaded %d times", c.load, policy, tool, n)
				}
			}
		}
	}
}
