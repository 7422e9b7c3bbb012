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
	const kimi = `{"type":"metadata","protocol_version":"1.5"}
{"type":"context.append_message","message":{"role":"user","content":[{"type":"text","text":"Read it."}],"origin":{"kind":"user"}}}
{"type":"context.append_loop_event","event":{"type":"step.begin","uuid":"s1"}}
{"type":"context.append_loop_event","event":{"type":"tool.call","stepUuid":"s1","toolCallId":"c1","name":"Read","args":{}}}
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
		"kimi-code: what a tool notes beside its output": {kimi + `{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"c1","result":{"output":"a = 1","note":"<system>Lines 1 to 9 of 40.</system>"}}}`,
			`[text "a = 1"; text "<system>Lines 1 to 9 of 40.</system>"]`},
		"kimi-code: a note beside a result that stands alone": {kimi + `{"type":"context.append_message","message":{"role":"tool","toolCallId":"c1","content":[{"type":"text","text":"a = 1"}],"note":"Cut off."}}`,
			`[text "a = 1"; text "Cut off."]`},
		"kimi-code: a summary that is a message": {kimi + `{"type":"context.apply_compaction","summary":{"role":"user","content":[{"type":"text","text":"Port 5544 it is."}]},"count":2}`,
			`text "Port 5544 it is."`},
		"cline: a picture that the model made": {`[{"role":"user","ts":1,"content":[{"type":"text","text":"Draw."}]},{"role":"assistant","ts":2,"content":[{"type":"media","media":{"id":"1","modality":"image","mediaType":"image/png","source":{"type":"base64","data":"iVBO"}}}]}]`,
			`media image image/png name="" url="" data="iVBO"`},
		"copilot-cli: what the program tells the model": {copilot + `{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"seen"}},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}
{"type":"system.notification","data":{"content":"<system_notification>\nThe build is done: 3 plums.\n</system_notification>","kind":{"type":"shell_completed"}},"id":"e4","timestamp":"2026-11-20T10:00:03Z"}`,
			`text "<system_notification>\nThe build is done: 3 plums.`},
		"copilot-cli: a notice of another mode": {copilot + `{"type":"session.mode_notice_delivered","data":{"mode":"plan","content":"Write no files."},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}`,
			`text "Write no files."`},
		"copilot-cli: a picture that is kept apart": {copilot + `{"type":"session.binary_asset","data":{"assetId":"sha256:1","type":"image","mimeType":"image/png","data":"iVBO","byteLength":3},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"seen","binaryResultsForLlm":[{"type":"image","assetId":"sha256:1","mimeType":"image/png","byteLength":3}]}},"id":"e4","timestamp":"2026-11-20T10:00:03Z"}`,
			`[text "seen"; media image image/png name="" url="" data="iVBO" text=""]`},
		"copilot-cli: a picture of the user's that is kept apart": {copilot + `{"type":"session.binary_asset","data":{"assetId":"sha256:1","type":"image","mimeType":"image/png","data":"iVBO","byteLength":3},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}
{"type":"user.message","data":{"content":"Look.","attachments":[{"type":"blob","assetId":"sha256:1","mimeType":"image/png","byteLength":3,"displayName":"a.png"}]},"id":"e4","timestamp":"2026-11-20T10:00:03Z"}`,
			`media image image/png name="a.png" url="" data="iVBO"`},
		"opencode: files of version 2": {`{"info":{"id":"ses_1"},"messages":[{"id":"m1","type":"user","time":{"created":1},"text":"Look.","files":[{"uri":"data:image/png;base64,iVBO","mime":"image/png","name":"a.png"}]}]}`,
			`media image image/png name="a.png" url="" data="iVBO"`},
		"opencode: files that a tool of version 2 gives": {`{"info":{"id":"ses_1"},"messages":[{"id":"m1","type":"assistant","time":{"created":1},"content":[{"type":"tool","id":"c1","name":"read","state":{"status":"completed","input":{},"content":[{"type":"text","text":"seen"},{"type":"file","uri":"data:image/png;base64,iVBO","mime":"image/png","name":"a.png"}]}}]}]}`,
			`[text "seen"; media image image/png name="a.png" url="" data="iVBO" text=""]`},
		"opencode: what the program of version 2 tells the model": {`{"info":{"id":"ses_1"},"messages":[{"id":"m1","type":"system","time":{"created":1},"text":"The date is now May 3."},{"id":"m2","type":"user","time":{"created":1},"text":"Look."}]}`,
			`text "The date is now May 3."`},
		"copilot-cli: what the user ran": {copilot + `{"type":"tool.user_requested","data":{"toolCallId":"u1","toolName":"bash","arguments":{"command":"ls"}},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"u1","success":true,"isUserRequested":true,"result":{"content":"plums"}},"id":"e4","timestamp":"2026-11-20T10:00:03Z"}`,
			"user attached turn 0 10:00:03\n      text \"Ran `ls`\\n```\\nplums\\n```"},
		"copilot-cli: a file that is told by its name": {copilot + `{"type":"user.message","data":{"content":"Look.","attachments":[{"type":"file","path":"/w/a.pdf","displayName":"a.pdf","mimeType":"application/pdf","omittedReason":"too_large"}]},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}`,
			`text "Attached /w/a.pdf"`},
		"copilot-cli: a tool of the provider": {copilot + `{"type":"assistant.message","data":{"content":"12.","serverTools":{"provider":"openai","items":[{"type":"web_search_call","id":"w1","action":{"query":"plums"}}]}},"id":"e3","timestamp":"2026-11-20T10:00:02Z"}`,
			`opaque web_search_call`},
		"codex: what another agent said": {`{"type":"session_meta","payload":{"id":"s"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Look."}]}}
{"type":"inter_agent_communication","payload":{"author":"/root/scout","recipient":"/root","content":"port 5544","trigger_turn":false}}`,
			`port 5544`},
		"gemini-cli: a picture of a result, in a message of its own": {`{"sessionId":"s","projectHash":"h","messages":[{"id":"1","type":"user","content":[{"text":"Look."}]},{"id":"2","type":"info","content":[{"inlineData":{"mimeType":"image/png","data":"iVBO"}}]}]}`,
			`media image image/png name="" url="" data="iVBO"`},
		"pi: instructions in blocks": {`{"type":"session","version":3,"id":"s","cwd":"/r","timestamp":"2026-05-12T10:00:00Z"}
{"type":"message","id":"1","parentId":null,"timestamp":"2026-05-12T10:00:01Z","message":{"role":"system","content":[{"type":"text","text":"Never push."}]}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-05-12T10:00:01Z","message":{"role":"user","content":"Look."}}`,
			`system (system) "Never push."`},
		"pi: instructions that a compaction holds": {`{"type":"session","version":3,"id":"s","cwd":"/r","timestamp":"2026-05-12T10:00:00Z"}
{"type":"message","id":"2","parentId":null,"timestamp":"2026-05-12T10:00:01Z","message":{"role":"user","content":"Look."}}
{"type":"compaction","id":"3","parentId":"2","timestamp":"2026-05-12T10:00:01Z","summary":"Looked.","firstKeptEntryId":"2","tokensBefore":9,"systemMessage":{"role":"system","content":"Never push."}}`,
			`system (system) "Never push."`},
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
