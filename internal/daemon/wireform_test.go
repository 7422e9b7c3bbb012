package daemon_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/daemon"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestForms: for each API a request goes in and comes out byte for byte, the
// provider's response becomes the answer, and the next request holds both.
func TestForms(t *testing.T) {
	tests := []struct {
		api, first, response, second, want string
	}{
		{
			wire.Anthropic,
			`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[ {"role":"user","content":"What is in <the file> & why?"} ]}`,
			`{"type":"message","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a"}}],"usage":{"input_tokens":10,"output_tokens":5}}`,
			`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"text"}]}]}`,
			`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"What is in <the file> & why?"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"path":"a"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"text"}]}]}`,
		},
		{
			wire.Chat,
			`{"model":"gpt-5.1","messages":[ {"role":"system","content":"Be brief."},{"role":"user","content":"What is in <the file> & why?"}],"temperature":0.20}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]}}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`,
			`{"model":"gpt-5.1","messages":[{"role":"system","content":"Be brief."},{"role":"tool","tool_call_id":"c1","content":"text"}],"temperature":0.20}`,
			`{"model":"gpt-5.1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is in <the file> & why?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"text"}],"temperature":0.20}`,
		},
		{
			wire.Responses,
			`{"model":"gpt-5.1","instructions":"Be brief.","input":[{"role":"user","content":"What is in <the file> & why?"}],"store":false}`,
			`{"output":[{"type":"function_call","id":"fc_1","call_id":"c1","name":"Read","arguments":"{\"path\":\"a\"}"}],"usage":{"input_tokens":10,"output_tokens":5}}`,
			`{"model":"gpt-5.1","instructions":"Be brief.","input":[{"type":"function_call_output","call_id":"c1","output":"text"}],"store":false}`,
			`{"model":"gpt-5.1","instructions":"Be brief.","input":[{"role":"user","content":"What is in <the file> & why?"},{"type":"function_call","id":"fc_1","call_id":"c1","name":"Read","arguments":"{\"path\":\"a\"}"},{"type":"function_call_output","call_id":"c1","output":"text"}],"store":false}`,
		},
		{
			wire.Gemini,
			`{"contents":[ {"role":"user","parts":[{"text":"What is in <the file> & why?"}]}],"generationConfig":{"temperature":0}}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"}},"thoughtSignature":"c2ln"}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5}}`,
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"text"}}}]}],"generationConfig":{"temperature":0}}`,
			`{"contents":[{"role":"user","parts":[{"text":"What is in <the file> & why?"}]},{"role":"model","parts":[{"functionCall":{"name":"Read","args":{"path":"a"}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"output":"text"}}}]}],"generationConfig":{"temperature":0}}`,
		},
	}
	c := start(t, daemon.Config{}).client(t, "")
	for _, tt := range tests {
		t.Run(tt.api, func(t *testing.T) {
			ctx := t.Context()
			if _, err := c.CreateThread(ctx, api.NewThread{ID: tt.api}); err != nil {
				t.Fatal(err)
			}
			p, err := c.Prepare(ctx, tt.api, 0, api.Step{API: tt.api, Body: json.RawMessage(tt.first)})
			if err != nil || p.Tokens == 0 || compact(t, p.Body) != compact(t, json.RawMessage(tt.first)) {
				t.Fatalf("the first request: %s: %v", p.Body, err)
			}
			if _, err := c.Finish(ctx, tt.api, 1, api.Answer{API: tt.api, Response: json.RawMessage(tt.response)}); err != nil {
				t.Fatal(err)
			}
			p, err = c.Prepare(ctx, tt.api, 2, api.Step{API: tt.api, Body: json.RawMessage(tt.second)})
			if err != nil || compact(t, p.Body) != compact(t, json.RawMessage(tt.want)) {
				t.Fatalf("the second request:\n got %s\nwant %s\n%v", p.Body, tt.want, err)
			}
			log, err := c.Log(ctx, tt.api, "", 0)
			if err != nil || len(log.Items) != 3 || log.Items[2].Parts[0].Tool != "Read" {
				t.Fatalf("the result does not name its tool: %+v: %v", log, err)
			}
			// The same thread for a model that speaks no provider's API.
			p, err = c.Prepare(ctx, tt.api, 3, api.Step{Base: &neutral.Prompt{Model: "other", System: []neutral.System{{Text: "Be brief."}}}})
			if err != nil || p.Prompt == nil || len(p.Prompt.Messages) != 3 || p.Prompt.System[0].Text != "Be brief." || p.API != "" {
				t.Fatalf("%+v: %v", p, err)
			}
		})
	}
}

// compact is JSON without the white space that travelling takes away; everything
// else stays.
func compact(t *testing.T, doc json.RawMessage) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return out.String()
}
