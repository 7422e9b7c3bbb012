package thread_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/hosted"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// TestHostedIdentity: what is known of hosted calls is no part of a message's identity. These are the
// last ids of conversations as they were before it was read.
func TestHostedIdentity(t *testing.T) {
	for _, c := range []struct {
		codec interface {
			Decode(string) (*prompt.Prompt, error)
		}
		body string
		want thread.ID
	}{
		{anthropic.Codec{}, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"count"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"code_execution","input":{"code":"x"}},{"type":"tool_use","id":"a","name":"read","input":{},"caller":{"type":"code_execution_20260120","tool_id":"s1"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},{"role":"assistant","content":[{"type":"code_execution_tool_result","tool_use_id":"s1","content":{"type":"code_execution_result","stdout":"1","stderr":"","return_code":0,"content":[]}},{"type":"mcp_tool_use","id":"m1","name":"find","server_name":"n","input":{}},{"type":"mcp_tool_result","tool_use_id":"m1","is_error":false,"content":[]}]}]}`, "7fd8e026c0f2367ef8bbfb83d1c3a2d3"},
		{openai.Responses{}, `{"model":"m","input":[{"role":"user","content":"count"},{"type":"program","call_id":"p","code":"x"},{"type":"function_call","call_id":"a","name":"read","arguments":"{}","caller":{"type":"program","caller_id":"p"}},{"type":"function_call_output","call_id":"a","output":"1"},{"type":"program_output","call_id":"p","result":"1"},{"type":"multi_agent_call","call_id":"m","action":"list_agents","arguments":"{}"},{"type":"multi_agent_call_output","call_id":"m","output":[]},{"type":"additional_tools","role":"developer","tools":[]},{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}},{"type":"tool_search_call","execution":"server","arguments":{}},{"type":"shell_call","call_id":"s","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"s","output":[{"stdout":"x"}]}]}`, "3a7b89c08ed11b4f696294172c68d16f"},
		{gemini.Codec{}, `{"contents":[{"role":"user","parts":[{"text":"count"}]},{"role":"model","parts":[{"toolCall":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","args":{}}},{"toolResponse":{"id":"t","toolType":"GOOGLE_SEARCH_WEB","response":{}}},{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}]}]}`, "e82ad9f28eff5c25592c61617baafc92"},
	} {
		p, err := c.codec.Decode(c.body)
		if err != nil {
			t.Fatal(err)
		}
		th, err := thread.New("t").Append(hosted.Join(p.Messages)...)
		if err != nil {
			t.Fatal(err)
		}
		if got := th.Last(); got != c.want {
			t.Errorf("%T: %s, want %s", c.codec, got, c.want)
		}
	}
}
