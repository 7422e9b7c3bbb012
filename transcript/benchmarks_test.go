package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/palimpsest-ai/palimpsest/transcript"
)

// In some tasks of tau2-bench the simulated user has tools too. The agent sees neither its calls
// nor their results.
func TestTau2ToolsOfTheUser(t *testing.T) {
	const task = `{"simulations":[{"id":"z","messages":[
{"role":"assistant","content":"Restart it, please."},
{"role":"user","content":"","tool_calls":[{"id":"u1","name":"restart","arguments":{},"requestor":"user"}]},
{"role":"tool","id":"u1","content":"restarted","requestor":"user"},
{"role":"user","content":"Done, no signal.","tool_calls":[{"id":"u2","name":"signal","arguments":{},"requestor":"user"},{"id":"u3","name":"sim","arguments":{},"requestor":"user"}]},
{"role":"tool","id":"u2","content":"none","requestor":"user"},{"role":"tool","id":"u3","content":"locked","requestor":"user"},
{"role":"assistant","content":"","tool_calls":[{"id":"a1","name":"unlock","arguments":{},"requestor":"assistant"}]},
{"role":"tool","id":"a1","content":"unlocked","requestor":"assistant"}]}]}`
	if got, want := conversations(t, task), "assistant Restart it, please.|user Done, no signal.|assistant *a1|tool a1 unlocked"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	f, err := transcript.Read(strings.NewReader(task), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"empty user message": 1, "call by the user": 3, "result for the user": 3}, f.Report.Skipped); d != "" || len(f.Report.Warnings) > 0 {
		t.Errorf("%v\n%s", f.Report.Warnings, d)
	}
}

// What the user answers to a request for approval is no message to the model.
func TestAISDKApproval(t *testing.T) {
	const session = `{"messages":[
{"role":"user","content":"Clean up."},
{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c1","toolName":"rm","input":{}},{"type":"tool-approval-request","approvalId":"p1","toolCallId":"c1"}]},
{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"p1","approved":true}]},
{"role":"tool","content":[{"type":"tool-result","toolCallId":"c1","toolName":"rm","output":{"type":"text","value":"gone"}}]},
{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c2","toolName":"rm","input":{}},{"type":"tool-approval-request","approvalId":"p2","toolCallId":"c2"}]},
{"role":"tool","content":[{"type":"tool-approval-response","approvalId":"p2","approved":true},{"type":"tool-result","toolCallId":"c2","toolName":"rm","output":{"type":"text","value":"gone too"}}]},
{"role":"assistant","content":"Clean."}]}`
	if got, want := conversations(t, session), "user Clean up.|assistant *c1|tool c1 gone|assistant *c2|tool c2 gone too|assistant Clean."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	f, err := transcript.Read(strings.NewReader(session), nil)
	if err != nil {
		t.Fatal(err)
	}
	m := f.Transcripts[0].Thread.At(1)
	if f.Report.Skipped["tool-approval-request"] != 2 || f.Report.Skipped["tool-approval-response"] != 2 || len(m.Parts) != 1 {
		t.Errorf("skipped %v, an answer of %+v", f.Report.Skipped, m.Parts)
	}
}
