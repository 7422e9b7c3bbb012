package openai

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestOwnSummaryIsNoInstruction: a summary of ours that stands behind the instructions in
// the system's role is a message of the conversation, and not one more instruction; the
// request is sent on as it came. F10
func TestOwnSummaryIsNoInstruction(t *testing.T) {
	const said = `Compacted context summary:\n\nKEY FACTS:\n- port 8080`
	for codec, body := range map[wire.Codec]string{
		Chat{}:      `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"system","content":"` + said + `"},{"role":"user","content":"Go on."}]}`,
		Responses{}: `{"model":"m","input":[{"role":"system","content":"Be brief."},{"role":"system","content":"` + said + `"},{"role":"user","content":"Go on."}]}`,
	} {
		p, err := codec.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.System) != 1 || p.System[0].Text != "Be brief." || len(p.Messages) != 2 || p.Messages[0].Role != thread.System {
			t.Errorf("%s: %d instructions, %d messages", codec.API(), len(p.System), len(p.Messages))
		}
		if out, err := codec.Encode(p); err != nil || string(out) != body {
			t.Errorf("%s: sent on as %s, %v", codec.API(), out, err)
		}
	}
}
