package summarize_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestHostedCalls: what ran at the provider stands among the calls of a summary as what ran at the
// client does, with what it was asked, what came out, and whether it failed.
func TestHostedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		api, body string
		want      []string
	}{
		"Anthropic": {wire.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Count the shelves."},{"role":"assistant","content":[` +
			`{"type":"server_tool_use","id":"s","name":"code_execution","input":{"code":"count(shelves)"}},{"type":"code_execution_tool_result","tool_use_id":"s","content":{"type":"code_execution_result","stdout":"quokka 41","stderr":"","return_code":0,"content":[]}},` +
			`{"type":"mcp_tool_use","id":"m","name":"find_note","server_name":"notes","input":{"q":"gap"}},{"type":"mcp_tool_result","tool_use_id":"m","is_error":true,"content":[{"type":"text","text":"no such note"}]}]}]}`,
			[]string{"code_execution", "count(shelves)", "quokka 41", "find_note", "no such note", "fail"}},
		"Responses": {wire.Responses, `{"model":"m","input":[{"role":"user","content":"Count the shelves."},{"type":"program","id":"p","call_id":"c","code":"count(shelves)"},{"type":"program_output","id":"o","call_id":"c","status":"completed","result":"quokka 41"},` +
			`{"type":"mcp_call","id":"m","server_label":"notes","name":"find_note","arguments":"{\"q\":\"gap\"}","output":null,"error":"no such note"},{"type":"code_interpreter_call","id":"ci","container_id":"k","code":"weigh()","outputs":[{"type":"logs","logs":"7 kg"}]}]}`,
			[]string{"program", "count(shelves)", "quokka 41", "find_note", "no such note", "fail", "weigh()", "7 kg"}},
		"Gemini": {wire.Gemini, `{"contents":[{"role":"user","parts":[{"text":"Count the shelves."}]},{"role":"model","parts":[{"executableCode":{"id":"c","language":"PYTHON","code":"count(shelves)"}},{"codeExecutionResult":{"id":"c","outcome":"OUTCOME_FAILED","output":"quokka 41"}},` +
			`{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["gap"]}}},{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{"answer":"none"}}}]}]}`,
			[]string{"executableCode", "count(shelves)", "quokka 41", "fail", "GOOGLE_SEARCH_WEB", "gap", "none"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := apicodec.For(c.api).Decode(c.body)
			if err != nil {
				t.Fatal(err)
			}
			th, err := thread.New("t").Append(p.Messages...)
			if err != nil {
				t.Fatal(err)
			}
			made, err := (&summarize.Extractive{}).Summarize(t.Context(), summarize.Input{Messages: th.Messages(), Budget: 2000})
			if err != nil {
				t.Fatal(err)
			}
			text := made.Summary.Render()
			_, calls, _ := strings.Cut(text, "## Calls")
			for _, want := range c.want {
				if !strings.Contains(calls, want) {
					t.Errorf("the calls lack %q:\n%s", want, text)
				}
			}
			if n := len(made.Summary.Span.MessageIDs); n != th.Len() {
				t.Errorf("the span has %d messages of %d", n, th.Len())
			}
		})
	}
}
