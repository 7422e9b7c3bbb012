package apicodec_test

import (
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/apicodec"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestWrittenAnew: where an answer of the model is written anew, members that nobody here knows stay with what they
// came with.
func TestWrittenAnew(t *testing.T) {
	for api, body := range map[string]string{
		wire.Anthropic: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b","later":1},{"type":"tool_use","id":"toolu_1","name":"read","input":{"p":1},"later":2}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}]}`,
		wire.Chat:      `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","later":1,"tool_calls":[{"id":"c","type":"function","later":2,"function":{"name":"read","arguments":"{\"p\":1}"}}]},{"role":"tool","tool_call_id":"c","content":"x"}]}`,
		wire.Responses: `{"model":"m","input":[{"role":"user","content":"a"},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"b","later":1}]},{"type":"function_call","id":"fc_1","call_id":"c","name":"read","arguments":"{\"p\":1}","later":2},{"type":"function_call_output","call_id":"c","output":"x"}]}`,
		wire.Gemini:    `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b","later":1},{"functionCall":{"id":"c","name":"read","args":{"p":1}},"later":2}]},{"role":"user","parts":[{"functionResponse":{"id":"c","name":"read","response":{"output":"x"}}}]}]}`,
	} {
		codec := apicodec.For(api)
		p, err := codec.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Messages {
			p.Messages[i].Frame = nil
		}
		out, err := codec.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"later":1`, `"later":2`} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %s is gone from %s", api, want, out)
			}
		}
	}
}
