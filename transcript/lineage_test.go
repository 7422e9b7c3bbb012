package transcript_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// TestSwappedLines: a line that stands before the one that it follows is read behind it.
func TestSwappedLines(t *testing.T) {
	for agent, session := range map[string]string{
		"claude-code": `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"Look."}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","requestId":"r1","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]}}
{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"plums"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"s","requestId":"r2","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"Plums."}]}}
{"type":"user","uuid":"5","parentUuid":"4","sessionId":"s","message":{"role":"user","content":"Go on."}}
{"type":"assistant","uuid":"6","parentUuid":"5","sessionId":"s","requestId":"r3","message":{"id":"m3","role":"assistant","content":[{"type":"text","text":"Gone."}]}}`,
		"qwen-code": `{"uuid":"1","parentUuid":null,"sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Look."}]}}
{"uuid":"2","parentUuid":"1","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"ls","args":{}}}]}}
{"uuid":"3","parentUuid":"2","sessionId":"s","type":"tool_result","message":{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"plums"}}}]}}
{"uuid":"4","parentUuid":"3","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"Plums."}]}}
{"uuid":"5","parentUuid":"4","sessionId":"s","type":"user","message":{"role":"user","parts":[{"text":"Go on."}]}}
{"uuid":"6","parentUuid":"5","sessionId":"s","type":"assistant","message":{"role":"model","parts":[{"text":"Gone."}]}}`,
	} {
		const want = "user Look.|assistant *c1|tool c1 plums|assistant Plums.|user Go on.|assistant Gone."
		lines := strings.Split(session, "\n")
		for i := range lines {
			for k := i + 1; k < len(lines); k++ { // line i stands behind line k
				moved := slices.Insert(slices.Delete(slices.Clone(lines), i, i+1), k, lines[i])
				if got := conversations(t, strings.Join(moved, "\n")); got != want {
					t.Errorf("%s, line %d behind line %d: %s", agent, i+1, k+1, got)
				}
			}
		}
		for _, circle := range []string{`"parentUuid":"6"`, `"parentUuid":"1"`} { // an end is all that is asked
			conversations(t, strings.Replace(session, `"parentUuid":null`, circle, 1))
		}
	}
}

// TestCircleIsTold: where entries follow each other in a circle, the reader says where it cut it.
func TestCircleIsTold(t *testing.T) {
	const line = `{"uuid":"%d","parentUuid":"%d","sessionId":"s","type":"user","message":{"role":"user","content":"Look."}}` + "\n"
	f, err := transcript.Read(strings.NewReader(fmt.Sprintf(line+line+line, 1, 3, 2, 1, 3, 2)), nil)
	if err != nil || f.Transcripts[0].Thread.Len() != 3 || !strings.Contains(warnings(f), "in a circle") {
		t.Errorf("%v: %v", err, f)
	}
}
