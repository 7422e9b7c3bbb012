package token_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestProgramsRead: what only a program of the provider reads takes no tokens, whether the program has
// ended or not; what the model reads beside it does.
func TestProgramsRead(t *testing.T) {
	const begun = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"count"},` +
		`{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"code_execution","input":{}},` +
		`{"type":"server_tool_use","id":"w","name":"web_search","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"w","content":[{"type":"web_search_result","title":"$web","url":"https://a.example","encrypted_content":"x"}],"caller":{"type":"code_execution_20260120","tool_id":"s"}},` +
		`{"type":"tool_use","id":"a","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s"}},` +
		`{"type":"tool_use","id":"b","name":"read","input":{},"caller":{"type":"direct"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"$program"},{"type":"tool_result","tool_use_id":"b","content":"$direct"}]}`
	const responses = `{"model":"m","input":[{"role":"user","content":"count"},{"type":"program","id":"p","call_id":"s","code":"x"},` +
		`{"type":"function_call","call_id":"a","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"s"}},{"type":"function_call","call_id":"b","name":"read","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"a","output":"$program","caller":{"type":"program","caller_id":"s"}},{"type":"function_call_output","call_id":"b","output":"$direct"}`
	for _, c := range []struct{ api, body string }{
		{wire.Anthropic, begun + `]}`},
		{wire.Anthropic, begun + `,{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"s","content":{"type":"code_execution_result","stdout":"1","stderr":"","return_code":0,"content":[]}}]}]}`},
		{wire.Responses, responses + `]}`},
		{wire.Responses, responses + `,{"type":"program_output","id":"o","call_id":"s","status":"completed","result":"1"}]}`},
	} {
		count := func(place string) int {
			body := strings.Replace(c.body, place, strings.Repeat("row of the shelf; ", 500), 1)
			p, err := apicodec.For(c.api).Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			counter, err := token.New("o200k", nil)
			if err != nil {
				t.Fatal(err)
			}
			if known := counter.Remembering(nil).Prompt(p); known != counter.Prompt(p) {
				t.Errorf("%s: %d tokens from memory, not %d", c.body, known, counter.Prompt(p))
			}
			return counter.Prompt(p)
		}
		base, program, web, direct := count("$none"), count("$program"), count("$web"), count("$direct")
		if program != base || web != base {
			t.Errorf("%s:\n%d tokens, with what a program reads %d and %d", c.body, base, program, web)
		}
		if direct < base+1000 {
			t.Errorf("%s:\n%d tokens, with a result that the model reads %d", c.body, base, direct)
		}
	}
}
