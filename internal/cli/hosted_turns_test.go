package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostedTurns are conversations whose calls at the provider end in unusual ways. first stands at the beginning, turn is
// had again and again (%[1]d is its number, %[2]s what a call brought), and last may still run.
var hostedTurns = []struct {
	name, api, list, body, first, turn, last string
	running                                  int
}{
	{"a container that expired, errors of tools", "anthropic", "messages",
		`{"model":"claude-opus-5","max_tokens":1000,"tools":[{"type":"code_execution_20260120","name":"code_execution"},{"type":"web_fetch_20260209","name":"web_fetch"},{"name":"shelf","input_schema":{"type":"object"}}],"mcp_servers":[{"type":"url","name":"notes","url":"https://n.example"}],"messages":[%s]}`,
		`{"role":"user","content":"Count."},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_x","name":"code_execution","input":{"code":"count()"}},{"type":"tool_use","id":"toolu_x","name":"shelf","input":{},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_x","content":"row"}]},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_x","content":{"type":"code_execution_tool_result_error","error_code":"container_expired"}},{"type":"text","text":"By hand, then."}]}`,
		`{"role":"user","content":"Shelf %[1]d."},{"role":"assistant","content":[{"type":"mcp_tool_use","id":"mcptoolu_%[1]d","name":"find","server_name":"notes","input":{}},{"type":"mcp_tool_result","tool_use_id":"mcptoolu_%[1]d","is_error":true,"content":[{"type":"text","text":"%[2]s"}]},{"type":"server_tool_use","id":"srvtoolu_%[1]d","name":"web_fetch","input":{"url":"https://a.example"}},{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_%[1]d","content":{"type":"web_fetch_tool_result_error","error_code":"url_not_accessible"}},{"type":"text","text":"Counted."}]}`,
		`{"role":"user","content":"And now?"}`, 0},
	{"a type of server tool that is new", "anthropic", "messages", `{"model":"claude-opus-5","max_tokens":1000,"messages":[%s]}`, `{"role":"user","content":"Count."},{"role":"assistant","content":"Yes."}`,
		`{"role":"user","content":"Shelf %[1]d."},{"role":"assistant","content":[{"type":"novel_tool_use","id":"n_%[1]d","input":{}},{"type":"novel_tool_result","tool_use_id":"n_%[1]d","content":"%[2]s"},{"type":"text","text":"Counted."}]}`,
		`{"role":"user","content":"And now?"}`, 0},
	{"approvals, a shell, tools that were loaded", "responses", "input",
		`{"model":"gpt-5.5","tools":[{"type":"tool_search","execution":"client"},{"type":"mcp","server_label":"notes","server_url":"https://n.example"},{"type":"shell"},{"type":"function","name":"weigh","parameters":{"type":"object"},"defer_loading":true}],"input":[%s]}`,
		`{"role":"user","content":"Count."},{"type":"mcp_list_tools","id":"mcpl_1","server_label":"notes","tools":[{"name":"find","input_schema":{"type":"object"}}]},{"type":"tool_search_call","id":"ts_1","call_id":"call_ts","execution":"client","status":"completed","arguments":{"query":"weigh"}},{"type":"tool_search_output","id":"to_1","call_id":"call_ts","execution":"client","status":"completed","tools":[{"type":"function","name":"weigh","parameters":{"type":"object"},"defer_loading":true}]}`,
		`{"role":"user","content":"Shelf %[1]d."},{"type":"mcp_approval_request","id":"mcpr_%[1]d","name":"find","server_label":"notes","arguments":"{}"},{"type":"mcp_approval_response","approval_request_id":"mcpr_%[1]d","approve":true},{"type":"mcp_call","id":"mcp_%[1]d","name":"find","server_label":"notes","arguments":"{}","output":"%[2]s","approval_request_id":"mcpr_%[1]d"},{"type":"shell_call","id":"sh_%[1]d","call_id":"call_sh%[1]d","action":{"commands":["ls"]},"status":"completed"},{"type":"shell_call_output","call_id":"call_sh%[1]d","output":[{"stdout":"%[2]s","stderr":"","outcome":{"type":"exit","exit_code":0}}]},{"type":"message","role":"assistant","id":"msg_%[1]d","content":[{"type":"output_text","text":"Counted."}]}`,
		`{"role":"user","content":"And now?"}`, 0},
	{"a search beside calls, late, in another order, and running", "gemini", "contents", `{"tools":[{"functionDeclarations":[{"name":"shelf"}]},{"googleSearch":{}}],"contents":[%s]}`, `{"role":"user","parts":[{"text":"Count."}]},{"role":"model","parts":[{"text":"Yes."}]}`,
		`{"role":"user","parts":[{"text":"Shelf %[1]d."}]},{"role":"model","parts":[{"toolCall":{"id":"t%[1]d","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"functionCall":{"id":"a%[1]d","name":"shelf","args":{}}},{"functionCall":{"id":"b%[1]d","name":"shelf","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"b%[1]d","name":"shelf","response":{"output":"%[2]s"}}},{"functionResponse":{"id":"a%[1]d","name":"shelf","response":{"output":"row"}}}]},{"role":"model","parts":[{"toolResponse":{"id":"t%[1]d","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"%[2]s"}}},{"text":"Counted."}]}`,
		`{"role":"user","parts":[{"text":"And now?"}]},{"role":"model","parts":[{"toolCall":{"id":"tz","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"functionCall":{"id":"az","name":"shelf","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"id":"az","name":"shelf","response":{"output":"open row"}}}]}`, 2},
	{"code without ids", "gemini", "contents", `{"tools":[{"codeExecution":{}}],"contents":[%s]}`, `{"role":"user","parts":[{"text":"Count."}]},{"role":"model","parts":[{"text":"Yes."}]}`,
		`{"role":"user","parts":[{"text":"Shelf %[1]d."}]},{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"f()"}},{"codeExecutionResult":{"outcome":"OUTCOME_DEADLINE_EXCEEDED","output":"%[2]s"}},{"text":"Counted."}]}`,
		`{"role":"user","parts":[{"text":"And now?"}]}`, 0},
}

// TestHostedTurns: each of them is taken by check, and compacted by every policy to what check takes; what runs is sent
// as it was.
func TestHostedTurns(t *testing.T) {
	for _, c := range hostedTurns {
		list := []string{c.first}
		for n := range 14 {
			list = append(list, fmt.Sprintf(c.turn, n, shelfRows(n)))
		}
		file := filepath.Join(t.TempDir(), c.name+".json")
		if err := os.WriteFile(file, fmt.Appendf(nil, c.body, strings.Join(append(list, c.last), ",")), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, out, stderr := run(t, "check", file, "--to", c.api); status != 0 {
			t.Errorf("%s: status %d: %s%s", c.name, status, out, stderr)
		}
		compactHosted(t, file, c.api, c.list, c.running, 1500)
	}
}
