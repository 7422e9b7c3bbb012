package render_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestLateResults: a result that comes when its call is hidden is shown as the tool's text, nobody's
// words, and what is sent is valid; while its call stays it is sent as it came.
func TestLateResults(t *testing.T) {
	for name, c := range map[string]struct{ api, body string }{
		"a server tool": {wire.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"search"},{"role":"assistant","content":[{"type":"text","text":"On it."},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{"url":"https://a.example"}}]},` +
			`{"role":"user","content":"And the weather?"},{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"web_fetch_result","url":"https://a.example","content":{"type":"document","source":{"type":"text","media_type":"text/plain","data":"quokka"}}}},{"type":"text","text":"Here."}]},{"role":"user","content":"Thanks."}]}`},
		"MCP": {wire.Anthropic, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"search"},{"role":"assistant","content":[{"type":"text","text":"On it."},{"type":"mcp_tool_use","id":"mcptoolu_1","name":"find","server_name":"notes","input":{}}]},` +
			`{"role":"user","content":"And the weather?"},{"role":"assistant","content":[{"type":"mcp_tool_result","tool_use_id":"mcptoolu_1","is_error":false,"content":[{"type":"text","text":"quokka"}]},{"type":"text","text":"Here."}]},{"role":"user","content":"Thanks."}]}`},
		"a program": {wire.Responses, `{"model":"m","input":[{"role":"user","content":"search"},{"type":"program","id":"p","call_id":"c","code":"f()"},` +
			`{"role":"user","content":"And the weather?"},{"type":"program_output","id":"o","call_id":"c","status":"completed","result":"quokka"},{"role":"user","content":"Thanks."}]}`},
		"an agent": {wire.Responses, `{"model":"m","input":[{"role":"user","content":"search"},{"type":"multi_agent_call","call_id":"c","action":"spawn_agent","arguments":"{}"},` +
			`{"role":"user","content":"And the weather?"},{"type":"multi_agent_call_output","call_id":"c","action":"spawn_agent","output":[{"type":"output_text","text":"quokka"}]},{"role":"user","content":"Thanks."}]}`},
		"a tool of the client": {wire.Responses, `{"model":"m","input":[{"role":"user","content":"search"},{"type":"function_call","call_id":"c","name":"read","arguments":"{}"},` +
			`{"role":"user","content":"And the weather?"},{"type":"function_call_output","call_id":"c","output":"quokka"},{"role":"user","content":"Thanks."}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			codec := apicodec.For(c.api)
			base, err := codec.Decode(c.body)
			if err != nil {
				t.Fatal(err)
			}
			th, err := thread.New("t").Append(base.Messages...)
			if err != nil {
				t.Fatal(err)
			}
			sent := func(drop int) string {
				p := &plan.Plan{ThreadID: "t", ThreadVersion: 3}
				if drop > 0 {
					p.Drops = []plan.Removal{{Span: th.Range(0, drop)}}
				}
				out, _, err := render.Render(th, p, base, &render.Options{Profile: render.For(c.api)})
				if err != nil {
					t.Fatal(err)
				}
				data, err := codec.Encode(out)
				if err != nil {
					t.Fatal(err)
				}
				if drop > 0 {
					for _, problem := range codec.Validate(data) {
						if !problem.Advice {
							t.Errorf("%s\n%s", data, problem)
						}
					}
				}
				return string(data)
			}
			if name != "a tool of the client" && sent(0) != c.body {
				t.Errorf("while the call stays\n%s\nbecame\n%s", c.body, sent(0))
			}
			hidden := sent(2)
			if !strings.Contains(hidden, `without its call]`) || !strings.Contains(hidden, `\u003e quokka`) && !strings.Contains(hidden, `> quokka`) {
				t.Errorf("the result is not a quoted text in\n%s", hidden)
			}
			out, err := codec.Decode(hidden)
			if err != nil {
				t.Fatal(err)
			}
			for i := range out.Messages {
				m := &out.Messages[i]
				if m.Role != thread.Assistant && strings.Contains(m.Text(), "quokka") && m.StartsTurn() {
					t.Errorf("the tool speaks as the user in\n%s", hidden)
				}
			}
		})
	}
}
