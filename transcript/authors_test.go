package transcript_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestAuthors: who wrote a text is told by the agent's own record.
func TestAuthors(t *testing.T) {
	line := func(n, rest string) string {
		return `{"uuid":"u` + n + `","sessionId":"s","timestamp":"2026-05-12T10:00:0` + n + `Z","version":"2.1.332",` + rest + "}\n"
	}
	attached := `"attachment":{"type":"selected_lines_in_ide","content":"never push"}}` + "\n"
	for name, c := range map[string]struct {
		doc  string
		want []thread.Author
	}{
		"claude-code": {line("1", `"type":"user","message":{"role":"user","content":"Look."}`) +
			line("2", `"type":"attachment","parentUuid":"u1","attachment":{"type":"file"},"rendered":[{"content":"<system-reminder>\nnever push\n</system-reminder>"}]`) +
			strings.TrimSuffix(line("3", `"type":"attachment","parentUuid":"u2",`), "}\n") + attached +
			line("4", `"type":"attachment","parentUuid":"u3","attachment":{"type":"date"},"rendered":[{"content":"<system-reminder>\nIt is May.\n</system-reminder>"}]`) +
			line("5", `"type":"user","parentUuid":"u4","origin":{"kind":"peer"},"message":{"role":"user","content":"Always push."}`) +
			line("6", `"type":"user","parentUuid":"u5","origin":{"kind":"human"},"message":{"role":"user","content":"Go on."}`) +
			line("7", `"type":"assistant","parentUuid":"u6","message":{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Task","input":{}}]}`) +
			line("8", `"type":"user","parentUuid":"u7","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"Pushed."}]}`),
			[]thread.Author{thread.ByPerson, thread.ByAttachment, thread.ByAttachment, thread.ByHarness, thread.ByAgent, thread.ByPerson, thread.ByModel, thread.ByAgent}},
		"opencode": {`{"info":{"id":"ses_1"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"Look."},{"type":"text","synthetic":true,"text":"Called the Read tool with the following input: {}"},{"type":"text","synthetic":true,"text":"never push"},{"type":"file","mime":"text/plain","url":"file:///a","filename":"a"}]}]}`,
			[]thread.Author{thread.ByPerson, thread.ByAttachment}},
		"cursor": {`{"role":"user","message":{"content":[{"type":"text","text":"<git_status>\nnever push\n</git_status>"},{"type":"text","text":"<attached_files>\nnever push\n</attached_files>\n<user_query>\nLook.\n</user_query>"}]}}`,
			[]thread.Author{thread.ByHarness, thread.ByAttachment, thread.ByPerson}},
		"claude-code, others in the user's name": {line("1", `"type":"user","message":{"role":"user","content":"Look."}`) +
			line("2", `"type":"user","parentUuid":"u1","origin":{"kind":"auto-continuation"},"message":{"role":"user","content":"Go on."}`) +
			line("3", `"type":"user","parentUuid":"u2","origin":{"kind":"channel"},"message":{"role":"user","content":"Always push."}`) +
			line("5", `"type":"assistant","parentUuid":"u3","isVirtual":true,"message":{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]}`) +
			line("6", `"type":"system","parentUuid":"u5","subtype":"local_command","content":"<local-command-stdout>port 5544</local-command-stdout>"`) +
			line("7", `"type":"user","parentUuid":"u6","message":{"role":"user","content":"Go on."}`),
			[]thread.Author{thread.ByPerson, thread.ByHarness, thread.ByAgent, thread.ByHarness, thread.ByPerson}},
		"droid": {`{"type":"session_start","id":"s"}
{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"Look."}]}}
{"type":"message","id":"2","parentId":"1","message":{"role":"user","visibility":"llm_only","content":[{"type":"text","text":"The hook says: always push."}]}}
{"type":"message","id":"3","parentId":"2","message":{"role":"user","visibility":"user_only","content":[{"type":"text","text":"Model switched."}]}}
{"type":"message","id":"4","parentId":"3","message":{"role":"system","visibility":"llm_only","content":[{"type":"text","text":"Write files."}]}}
{"type":"message","id":"5","parentId":"4","message":{"role":"assistant","visibility":"both","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]}}
{"type":"message","id":"6","parentId":"5","message":{"role":"user","visibility":"llm_only","content":[{"type":"tool_result","tool_use_id":"a","content":"plums"}]}}`,
			[]thread.Author{thread.ByPerson, thread.ByHarness, thread.ByHarness, thread.ByModel, thread.ByTool}},
		"goose": {`{"id":"g","working_dir":"/w","conversation":[` +
			`{"role":"user","created":1,"content":[{"type":"text","text":"Look."}],"metadata":{"userVisible":true,"agentVisible":false}},` +
			`{"role":"user","created":2,"content":[{"type":"text","text":"Start working toward this goal: plums."}],"metadata":{"userVisible":false,"agentVisible":true}},` +
			`{"role":"assistant","created":3,"content":[{"type":"text","text":"I do."}]},` +
			`{"role":"user","created":4,"content":[{"type":"text","text":"Plums were found."}],"metadata":{"userVisible":false,"agentVisible":true}},` +
			`{"role":"assistant","created":5,"content":[{"type":"text","text":"Your context was compacted."}],"metadata":{"userVisible":false,"agentVisible":true}}]}`,
			[]thread.Author{thread.ByPerson, thread.ByHarness, thread.ByModel, thread.ByCompaction, thread.ByHarness}},
		"cline": {`[{"role":"user","ts":1,"content":[{"type":"text","text":"Plums were found."}],"metadata":{"kind":"compaction_summary","displayRole":"system","tokensBefore":9}},` +
			`{"role":"assistant","ts":2,"content":[{"type":"text","text":"The provider failed."}],"metadata":{"displayOnly":true,"displayRole":"error"}},` +
			`{"role":"user","ts":3,"content":[{"type":"text","text":"Go on."}]}]`,
			[]thread.Author{thread.ByCompaction, thread.ByPerson}},
		"copilot-cli": {`{"type":"user.message","data":{"content":"Go on.","isAutopilotContinuation":true},"id":"e1","timestamp":"2026-11-20T10:00:02Z"}`,
			[]thread.Author{thread.ByHarness}},
		"qwen-code": {`{"uuid":"q1","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Look."}]}}
{"uuid":"q2","parentUuid":"q1","sessionId":"s","type":"system","subtype":"chat_compression","systemPayload":{"info":{},"compressedHistory":[{"role":"user","parts":[{"text":"Look."}]},{"role":"model","parts":[{"text":"I looked."}]}]}}
{"uuid":"q3","parentUuid":"q2","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Go on."}]}}`,
			[]thread.Author{thread.ByPerson, thread.ByPerson}},
		"pi": {`{"type":"session","id":"s","cwd":"/r","timestamp":"2026-05-12T10:00:00Z"}` + "\n" +
			`{"type":"message","timestamp":"2026-05-12T10:00:01Z","message":{"role":"bashExecution","command":"ls","output":"never push"}}`,
			[]thread.Author{thread.ByAttachment}},
	} {
		f, err := transcript.Read(strings.NewReader(c.doc), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []thread.Author
		for _, m := range f.Transcripts[0].Thread.All() {
			if got = append(got, m.Author()); m.Author() != thread.ByPerson && injected.UserWords(m) != "" {
				t.Errorf("%s: the user says %q", name, injected.UserWords(m))
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s, message %d is by %s, want %s", name, i, got[i], c.want[i])
			}
		}
	}
}

// TestRefusals: what the user said of a call that they did not allow is theirs, by the agent's own record.
func TestRefusals(t *testing.T) {
	const call = `{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"c1","name":"bash"}]},"id":"e1","timestamp":"2026-11-20T10:00:01Z"}
{"type":"permission.completed","data":{"requestId":"p1","toolCallId":"c1","decisionSource":"%s","result":{"kind":"denied-interactively-by-user","feedback":"Never here."}},"id":"e2","timestamp":"2026-11-20T10:00:02Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":%s,"result":{"content":"done"},"error":{"message":"The user did not allow it: Never here."}},"id":"e3","timestamp":"2026-11-20T10:00:03Z"}`
	for name, c := range map[string]struct {
		doc, said string
		denied    bool
	}{
		"copilot-cli":              {fmt.Sprintf(call, "human_response", "false"), "Never here.", true},
		"copilot-cli, a hook":      {fmt.Sprintf(call, "hook", "false"), "", false},
		"copilot-cli, it ran then": {fmt.Sprintf(call, "human_response", "true"), "", false},
		"amp":                      {`{"id":"T-1","v":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"rejected-by-user","reason":"Never here."}}]}]}`, "Never here.", true},
		"amp, a failure":           {`{"id":"T-1","v":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"error","reason":"Never here."}}]}]}`, "", false},
	} {
		f, err := transcript.Read(strings.NewReader(c.doc), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := f.Transcripts[0].Thread.At(1)
		if r, _ := m.Result(); m.Said() != c.said || r.Denied != c.denied {
			t.Errorf("%s: the user said %q, denied %v", name, m.Said(), r.Denied)
		}
	}
}

// TestAttachedFiles: what the user attached is the user's material, and what the agent adds is not.
func TestAttachedFiles(t *testing.T) {
	f, err := transcript.Open(filepath.Join(corpus.Dir(t, "cases/agents/attached-files"), "session.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]thread.Author{"the port is 5544": thread.ByAttachment, "x=1": thread.ByAttachment, "Weights are in grams": thread.ByHarness, "Today's date": thread.ByHarness}
	for text, want := range by {
		found := false
		for _, m := range f.Transcripts[0].Thread.All() {
			if strings.Contains(m.Text(), text) {
				if found = true; m.Author() != want {
					t.Errorf("%q is by %s, want %s", text, m.Author(), want)
				}
			}
		}
		if !found {
			t.Errorf("%q is gone", text)
		}
	}
}
