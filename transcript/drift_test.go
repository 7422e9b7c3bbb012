package transcript_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestOtherShapes: formats change. What stands in a shape that is not known is read all the same, or told, and costs
// nothing beside it.
func TestOtherShapes(t *testing.T) {
	const (
		claude  = `{"uuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":"Look."}}` + "\n"
		codex   = `{"type":"session_meta","payload":{"id":"s"}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}]}}` + "\n"
		copilot = `{"type":"session.start","data":{"sessionId":"s"},"id":"e1","timestamp":"2026-11-20T10:00:00Z"}` + "\n" +
			`{"type":"user.message","data":{"content":"Look."},"id":"e2","timestamp":"2026-11-20T10:00:00Z"}` + "\n"
		call = `{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"c1","name":"view"}]},"id":"e3","timestamp":"2026-11-20T10:00:01Z"}` + "\n"
		pi   = `{"type":"session","version":3,"id":"s","cwd":"/r","timestamp":"2026-05-12T10:00:00Z"}` + "\n" +
			`{"type":"message","id":"1","parentId":null,"timestamp":"2026-05-12T10:00:01Z","message":{"role":"user","content":"Look."}}` + "\n"
		amp = `{"id":"T-1","v":1,"messages":[{"role":"user","content":[{"type":"text","text":"Look."}]},`
	)
	gemini := func(answer string) string {
		return `{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":"Look."},{"id":"2","type":"gemini",` + answer + `}]}`
	}
	opencode := func(state string) string {
		return `{"info":{"id":"s"},"messages":[{"info":{"id":"1","role":"assistant"},"parts":[{"type":"tool","callID":"c1","tool":"bash","state":` + state + `}]}]}`
	}
	for name, c := range map[string]struct{ doc, want string }{
		"claude-code: a block alone":                     {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":{"type":"text","text":"Port 5544."}}}`, `text "Port 5544."`},
		"claude-code: content that is none":              {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":[7]}}`, "line 2: a message cannot be read and was left out"},
		"claude-code: content elsewhere":                 {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"user","message":{"role":"user","body":"Port 5544."}}`, "user without message.content (1)"},
		"claude-code: a text that is a block":            {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":{"value":"Port 5544."}}]}}`, `opaque text`},
		"claude-code: the content of a result":           {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Read","input":{}}]}}` + "\n" + `{"uuid":"u3","parentUuid":"u2","sessionId":"s","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":{"type":"text","text":"Port 5544."}}]}}`, `[text "Port 5544."]`},
		"claude-code: a result of a new kind is no user": {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":[{"type":"warp_result","id":"c1","content":"Port 5544."}]}}`, "1 user injected turn 1"},
		"claude-code: a system record":                   {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"system","subtype":"memory_wipe"}`, "left out: system/memory_wipe (1)"},
		"claude-code: an attachment":                     {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"attachment","attachment":{"type":"voice_note","content":"Port 5544."}}`, "left out: attachment/voice_note (1)"},
		"codex: an event":                                {codex + `{"type":"event_msg","payload":{"type":"history_wiped"}}`, "left out: event_msg/history_wiped (1)"},
		"codex: an item that is none":                    {codex + `{"type":"response_item","payload":"Port 5544."}`, "response_item that is no object (1)"},
		"codex: content elsewhere":                       {codex + `{"type":"response_item","payload":{"type":"message","role":"user","body":"Port 5544."}}`, "response_item/message without content (1)"},
		"codex: a text that is a block":                  {codex + `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":{"value":"Port 5544."}}]}}`, `Port 5544.`},
		"copilot-cli: content in blocks":                 {copilot + `{"type":"user.message","data":{"content":[{"type":"text","text":"Port 5544."}]},"id":"e3","timestamp":"2026-11-20T10:00:01Z"}`, `text "Port 5544."`},
		"copilot-cli: content elsewhere":                 {copilot + `{"type":"user.message","data":{"prompt":"Port 5544."},"id":"e3","timestamp":"2026-11-20T10:00:01Z"}`, "user.message without content (1)"},
		"copilot-cli: a result in blocks":                {copilot + call + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":[{"type":"text","text":"Port 5544."}]}},"id":"e4","timestamp":"2026-11-20T10:00:02Z"}`, `[text "Port 5544."]`},
		"copilot-cli: a result elsewhere":                {copilot + call + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"textForLlm":"Port 5544."}},"id":"e4","timestamp":"2026-11-20T10:00:02Z"}`, `Port 5544.`},
		"cline: thinking elsewhere":                      {`[{"role":"user","ts":1,"content":[{"type":"text","text":"Look."}]},{"role":"assistant","ts":2,"content":[{"type":"thinking","thought":"Port 5544."}]}]`, `Port 5544.`},
		"cline: content elsewhere":                       {`[{"role":"user","ts":1,"content":[{"type":"text","text":"Look."}]},{"role":"assistant","ts":2,"body":"Port 5544."}]`, "message without content (1)"},
		"opencode: a result that is not called complete": {opencode(`{"status":"done","input":{},"output":"Port 5544."}`), `[text "Port 5544."]`},
		"opencode: an undo to what is not there":         {`{"info":{"id":"s","revert":{"messageID":"9"}},"messages":[{"info":{"id":"1","role":"user"},"parts":[{"type":"text","text":"Look."}]}]}`, "the message 9, which is not there"},
		"copilot-cli: a result renamed":                  {copilot + call + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"outcome":{"content":"Port 5544."}},"id":"e4","timestamp":"2026-11-20T10:00:02Z"}`, "tool.execution_complete.outcome (1)"},
		"copilot-cli: an error renamed":                  {copilot + call + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":false,"failure":{"message":"Port 5544."}},"id":"e4","timestamp":"2026-11-20T10:00:02Z"}`, "tool.execution_complete.failure (1)"},
		"gemini-cli: thoughts renamed":                   {gemini(`"content":"Seen.","thinking":[{"subject":"Port 5544."}]`), "message.thinking (1)"},
		"gemini-cli: calls renamed":                      {gemini(`"content":"Seen.","actions":[{"name":"get"}]`), "message.actions (1)"},
		"gemini-cli: the result of a call renamed":       {gemini(`"content":"Seen.","toolCalls":[{"id":"c1","name":"get","args":{},"status":"success","response":"Port 5544."}]`), "message.toolCalls.response (1)"},
		"codex: an output renamed":                       {codex + `{"type":"response_item","payload":{"type":"function_call","call_id":"c1","name":"get","arguments":"{}"}}` + "\n" + `{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","out":"Port 5544."}}`, "function_call_output.out (1)"},
		"claude-code: what is rendered renamed":          {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"attachment","attachment":{"type":"date"},"shown":[{"content":"Port 5544."}]}`, "attachment.shown (1)"},
		"claude-code: two sessions in one file":          {claude + `{"uuid":"x1","parentUuid":null,"sessionId":"s2","type":"user","message":{"role":"user","content":"Port 5544."}}`, "another session, s2, begins here"},
		"claude-code: a member of a message":             {claude + `{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":"Go.","aside":"Port 5544."}}`, "user.message.aside (1)"},
		"crush: the members of a file renamed":           {`{"id":"s","prompt_tokens":1,"messages":[{"id":"1","role":"user","parts":[{"type":"text","data":{"text":"Look."}},{"type":"binary","data":{"File":"a.txt","MIMEType":"text/plain","Data":"cG9ydA=="}}]}]}`, "binary.File (1)"},
		"cline: a block beside the user's words":         {`[{"role":"user","ts":1,"content":[{"type":"text","text":"Look."},{"type":"warp_result","id":"c1","content":"Port 5544."}]}]`, "1 user injected turn 1"},
		"qwen-code: a part beside the user's words":      {`{"type":"user","uuid":"q1","sessionId":"s","message":{"role":"user","parts":[{"text":"Look."},{"warpResponse":{"id":"c1","output":"Port 5544."}}]}}`, "1 user injected turn 1"},
		"opencode: a call's members renamed":             {opencode(`{"status":"completed","input":{},"stdout":"Port 5544."}`), "tool.state.stdout (1)"},
		"goose: an error elsewhere":                      {`{"id":"g","working_dir":"/w","conversation":[{"role":"assistant","created":1,"content":[{"type":"toolRequest","id":"c1","toolCall":{"value":{"name":"get"}}}]},{"role":"user","created":2,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"error","reason":"Port 5544."}}]}]}`, `Port 5544.`},
		"amp: a command that the user ran":               {amp + `{"role":"info","content":[{"type":"manual_bash_invocation","args":{"cmd":"cat a"},"toolRun":{"status":"done","result":{"output":"Port 5544.","exitCode":0}}}]}]}`, "1 user attached turn 1"},
		"amp: a note":                                    {amp + `{"role":"info","content":[{"type":"warp"}]}]}`, "left out: info/warp (1)"},
		"droid: content that is none":                    {`{"type":"session_start","id":"s"}` + "\n" + `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"Look."}}` + "\n" + `{"type":"message","id":"2","parentId":"1","message":{"role":"user","content":[7]}}`, "a message cannot be read and was left out"},
		"pi: the user went back and said nothing":        {pi + `{"type":"message","id":"2","parentId":"1","timestamp":"2026-05-12T10:00:02Z","message":{"role":"user","content":"Push."}}` + "\n" + `{"type":"leaf","id":"3","parentId":"2","timestamp":"2026-05-12T10:00:03Z","targetId":"1"}`, "beside it:"},
	} {
		f, err := transcript.Read(strings.NewReader(c.doc), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b strings.Builder
		layoutOne(&b, f.Transcripts[0], "")
		if all := b.String() + warnings(f); !strings.Contains(all, c.want) {
			t.Errorf("%s:\n%swant %s", name, all, c.want)
		}
	}
}
