package transcript_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/transcript"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// Claude Code on a server of another maker keeps ids and thinking that
// Anthropic refuses. The session can still be sent there: calls and results
// stay pairs, and what was sealed by Anthropic keeps its bytes.
func TestClaudeCodeOfAnotherServer(t *testing.T) {
	const session = `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"look"}}
{"type":"assistant","uuid":"2","parentUuid":"1","sessionId":"s","message":{"id":"m1","role":"assistant","model":"other","content":[{"type":"thinking","thinking":"unsealed","signature":""},{"type":"tool_use","id":"functions.Bash:0","name":"Bash","input":{"command":"ls"}}]}}
{"type":"user","uuid":"3","parentUuid":"2","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions.Bash:0","content":"a.go"}]}}
{"type":"assistant","uuid":"4","parentUuid":"3","sessionId":"s","message":{"id":"m2","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"sealed","signature":"c2Vh"},{"type":"tool_use","id":"toolu_1","name":"Bash","input":{ }}]}}
{"type":"user","uuid":"5","parentUuid":"4","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"b.go"}]}}
`
	f, err := transcript.Read(strings.NewReader(session), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := prompt.Prompt{Model: "claude-sonnet-4-5"}
	for _, m := range f.Transcripts[0].Thread.All() {
		p.Messages = append(p.Messages, *m)
	}
	body, err := anthropic.Codec{}.Encode(&p)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range (anthropic.Codec{}).Validate(body) {
		if !problem.Advice {
			t.Error(problem)
		}
	}
	for _, kept := range []string{
		`{"type":"tool_use","id":"toolu_1","name":"Bash","input":{ }}`,
		`{"type":"thinking","thinking":"sealed","signature":"c2Vh"}`, `a.go`, `b.go`,
	} {
		if !strings.Contains(string(body), kept) {
			t.Errorf("%s is not in %s", kept, body)
		}
	}
	if strings.Contains(string(body), "unsealed") {
		t.Errorf("thinking without a signature was sent: %s", body)
	}
}
