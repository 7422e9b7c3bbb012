package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestDenied: what a session file's own record of a result says decides whether its call was denied.
func TestDenied(t *testing.T) {
	const said = `The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nrebase first`
	for _, tt := range []struct {
		name, tool, beside, version string
		failed, want                bool
	}{
		{"the client's error", "Bash", `"toolUseResult":"Error: ` + said + `",`, "2.1.17", true, true},
		{"the client's mark", "Bash", `"toolUseResult":"User rejected tool use",`, "2.1.30", true, true},
		{"a kind of denial", "mcp__x__find", `"toolDenialKind":"user-rejected","toolUseResult":{},`, "2.1.80", true, true},
		{"a command's output", "Bash", `"toolUseResult":{"stdout":"` + said + `"},`, "2.1.17", false, false},
		{"a command's error of an old version", "Bash", `"toolUseResult":"Error: ` + said + `",`, "1.0.93", true, false},
		{"a server's error", "mcp__x__find", `"toolUseResult":"Error: ` + said + `",`, "2.1.17", true, false},
		{"a server's text", "mcp__x__find", `"toolUseResult":"User rejected tool use",`, "2.1.17", false, false},
		{"a page", "WebFetch", `"toolUseResult":"Error: ` + said + `",`, "2.1.17", true, false},
		{"no record", "Bash", "", "2.1.17", true, false},
	} {
		file := fmt.Sprintf(`{"type":"user","uuid":"a","sessionId":"s","version":%[1]q,"message":{"role":"user","content":"Go."}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":%[2]q,"input":{}}]}}
{"type":"user","uuid":"c","parentUuid":"b","sessionId":"s","version":%[1]q,%[3]s"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","is_error":%[4]t,"content":"%[5]s"}]}}
`, tt.version, tt.tool, tt.beside, tt.failed, said)
		f, err := transcript.Read(strings.NewReader(file), nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		messages := f.Transcripts[0].Thread.Messages()
		if r, ok := messages[len(messages)-1].Result(); !ok || r.Denied != tt.want {
			t.Errorf("%s: denied %t, want %t", tt.name, r.Denied, tt.want)
		}
	}
}
