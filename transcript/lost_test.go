package transcript_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestNothingLost: what a session holds for the model, in whatever place or form, is in what is read, as lines
// of layoutOne have it.
func TestNothingLost(t *testing.T) {
	const copilot = `{"type":"session.start","data":{"sessionId":"s"},"id":"e1","timestamp":"2026-11-20T10:00:00Z"}
{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"c1","name":"view"}]},"id":"e2","timestamp":"2026-11-20T10:00:01Z"}
`
	attached := func(content string) string {
		return `{"uuid":"u1","sessionId":"s","type":"user","message":{"role":"user","content":"Look."}}
{"uuid":"u2","parentUuid":"u1","sessionId":"s","type":"attachment","attachment":{"type":"file","filename":"/w/a","content":{` + content + `}}}`
	}
	for name, c := range map[string]struct{ doc, want string }{
		"cline: a picture in the form of Anthropic's API": {`[{"role":"user","ts":1,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}]`,
			`media image image/png name="" url="" data="iVBO"`},
		"amp: a picture that lies elsewhere": {`{"id":"T-1","v":1,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.example/b.png"}}]}]}`,
			`url="https://a.example/b.png"`},
		"amp: files that the user mentioned": {`{"id":"T-1","v":1,"messages":[{"role":"user","content":[{"type":"text","text":"Look."}],"fileMentions":{"files":[{"uri":"file:///w/a.md","content":"port 5544"}]}}]}`,
			"1 user attached turn 1\n      text \"file:///w/a.md\\nport 5544\""},
		"amp: why a call was not allowed": {`{"id":"T-1","v":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"rejected-by-user","reason":"never here"}}]}]}`,
			`result c1 Bash failure structured="" [text "never here"]`},
		"goose: a resource that is no text": {`{"id":"g","working_dir":"/w","conversation":[{"role":"assistant","created":1,"content":[{"type":"toolRequest","id":"c1","toolCall":{"value":{"name":"get"}}}]},{"role":"user","created":2,"content":[{"type":"toolResponse","id":"c1","toolResult":{"value":{"content":[{"type":"resource","resource":{"uri":"a:b","text":"whole"}},{"type":"resource","resource":{"uri":"a:c","mimeType":"image/png","blob":"iVBO"}}]}}}]}]}`,
			`[text "whole"; media image image/png name="" url="" data="iVBO" text=""]`},
		"cline: documents": {`[{"role":"user","ts":1,"content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"port 5544"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}]}]`,
			"text \"port 5544\"\n      media document application/pdf name=\"\" url=\"\" data=\"JVBE\""},
		"cline: blocks of a result without a type": {`[{"role":"assistant","ts":1,"content":[{"type":"tool_use","id":"c1","name":"read_files","input":{}}]},{"role":"user","ts":2,"content":[{"type":"tool_result","tool_use_id":"c1","content":[{"query":"a","result":"plums"}]}]}]`,
			`[text "{\"query\":\"a\",\"result\":\"plums\"}"]`},
		"copilot-cli: a picture that a tool gives": {copilot + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"seen","contents":[{"type":"text","text":"seen"},{"type":"image","data":"iVBO","mimeType":"image/png"}]}},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}`,
			`[text "seen"; media image image/png name="" url="" data="iVBO" text=""]`},
		"copilot-cli: a reference": {copilot + `{"type":"user.message","data":{"content":"Look.","attachments":[{"type":"github_reference","title":"Plums","url":"https://a.example/4"}]},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}`,
			`text "Attached Plums\nhttps://a.example/4"`},
		"qwen-code: a picture that a tool gives": {`{"uuid":"q1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"shot","args":{}}}]}}
{"uuid":"q2","parentUuid":"q1","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"shot","response":{"output":"seen"},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBO"}}]}}]}}`,
			`[text "seen"; media image image/png name="" url="" data="iVBO" text=""]`},
		"responses: the result of a program is no result without its call": {`{"model":"m","input":[{"role":"user","content":"Go."},{"type":"program","call_id":"p1","code":"x"},{"type":"program_output","call_id":"p1","result":"12 plums","status":"completed"}]}`,
			`result p1 program success structured="" [text "12 plums"]`},
		"claude-code: a picture that the user attached":  {attached(`"type":"image","file":{"base64":"iVBO","type":"image/png"}`), "1 user attached turn 1\n      media image image/png name=\"\" url=\"\" data=\"iVBO\""},
		"claude-code: a PDF that the user attached":      {attached(`"type":"pdf","file":{"filePath":"/w/a.pdf","base64":"JVBE"}`), "1 user attached turn 1\n      media document application/pdf name=\"\" url=\"\" data=\"JVBE\""},
		"claude-code: a notebook that the user attached": {attached(`"type":"notebook","file":{"cells":[{"source":"a = 1"},{"source":"b = 2"}]}`), `text "a = 1\nb = 2"`},
	} {
		f, err := transcript.Read(strings.NewReader(c.doc), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var b strings.Builder
		layoutOne(&b, f.Transcripts[0], "")
		if !strings.Contains(b.String(), c.want) || len(f.Report.Warnings) > 0 {
			t.Errorf("%s:\n%s%swant %s", name, b.String(), warnings(f), c.want)
		}
	}
}
