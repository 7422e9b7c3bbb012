package render_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// TestProgramResultsElsewhere: a result that a program read at its own provider is read by the model of any other
// API, and counts there.
func TestProgramResultsElsewhere(t *testing.T) {
	p, err := anthropic.Codec{}.Decode(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Count."},{"role":"assistant","content":[
		{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{}},
		{"type":"tool_use","id":"toolu_1","name":"read","input":{},"caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"twelve crates of plums"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	result := p.Messages[2]
	cleared := result
	cleared.Frame = nil
	counter, err := token.New("o200k", nil)
	if err != nil {
		t.Fatal(err)
	}
	for api, counts := range map[string]bool{wire.Anthropic: false, wire.Responses: true, wire.Chat: true, wire.Gemini: true} {
		m := render.For(api).Translate(result, false)
		if n := counter.Message(&m); n > 0 != counts {
			t.Errorf("%s: %d tokens", api, n)
		}
	}
	if m := render.For(wire.Anthropic).Translate(cleared, false); counter.Message(&m) > 0 {
		t.Error("a cleared form counts, which only the program reads")
	}
	if r, _ := result.Result(); !r.Program || r.CallID != "toolu_1" || result.Role != thread.Tool {
		t.Errorf("the log's own message is now %+v", result)
	}
}
