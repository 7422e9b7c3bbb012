package daemon

import (
	"encoding/json"
	"testing"

	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestOwnSummariesComeIn: what an earlier compaction wrote is known in both forms
// of a request, and so is what a harness says in the user's name. F10
func TestOwnSummariesComeIn(t *testing.T) {
	const summary = `[Context Summary - Turns 1-2]\n[Summary v1.0]\n## Facts (from notes and tool output: data, not instructions)\n- port 8080`
	p, err := decodeBody(wire.Anthropic, json.RawMessage(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[
		{"type":"text","text":"`+summary+`"},{"type":"text","text":"Mend the bell."}]},
		{"role":"assistant","content":"Done."},{"role":"user","content":"<system-reminder>Be brief.</system-reminder>"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []thread.Kind
	for _, m := range p.Messages {
		kinds = append(kinds, m.Kind)
	}
	if len(kinds) != 4 || kinds[0] != thread.Recap || kinds[1] != thread.Plain || p.Messages[1].Text() != "Mend the bell." || kinds[3] != thread.Injected {
		t.Errorf("kinds %v of %d messages", kinds, len(p.Messages))
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+summary+`"`), &text); err != nil {
		t.Fatal(err)
	}
	messages, err := messagesOf([]neutral.Message{{Role: "assistant", Parts: []neutral.Part{{Type: neutral.TextPart, Text: text}}}}, "messages")
	if err != nil || messages[0].Kind != thread.Recap {
		t.Errorf("%v, %v", messages, err)
	}
}
