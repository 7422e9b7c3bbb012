package anthropic

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
	"github.com/palimpsest-ai/palimpsest/thread"
)

func response(body string) *exchange.Response {
	return &exchange.Response{Body: strings.NewReader(body), Stream: true, Status: 200, RequestID: "req_1"}
}

func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":10,"output_tokens":1}}}`
	end   = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`
	stop  = `{"type":"message_stop"}`
)

var streams = []struct {
	name, body string
	want       llm.Reply
	err        error
}{
	{"citations", events(start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":[]}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"As it <says>."}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"char_location","cited_text":"x"}}}`,
		`{"type":"content_block_stop","index":0}`, end, stop),
		llm.Reply{Text: "As it <says>.", Stop: llm.StopEnd, Message: say(thread.Text{Text: "As it <says>.", Source: raw(`{"type":"text","text":"As it <says>.","citations":[{"type":"char_location","cited_text":"x"}]}`)})}, nil},
	{"thinking without text keeps its seal", events(start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2Vh"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"bA=="}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0YQ=="}}`, end, stop),
		llm.Reply{Stop: llm.StopEnd, Message: say(
			thread.Reasoning{Signature: "c2VhbA==", Source: raw(`{"type":"thinking","thinking":"","signature":"c2VhbA=="}`)},
			thread.Reasoning{Signature: "ZGF0YQ==", Source: raw(`{"type":"redacted_thinking","data":"ZGF0YQ=="}`)})}, nil},
	{"compaction", events(start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null,"encrypted_content":null}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"so far","encrypted_content":"eA=="}}`, end, stop),
		llm.Reply{Stop: llm.StopEnd, Message: say(thread.Opaque{Kind: "compaction", Text: "so far", Source: raw(`{"type":"compaction","content":"so far","encrypted_content":"eA=="}`)})}, nil},
	{"a call without arguments, and indices with gaps", events(start,
		`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`,
		`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, stop),
		llm.Reply{Stop: llm.StopTool, Message: say(thread.ToolCall{ID: "toolu_1", Name: "look", Arguments: "{}", Source: raw(`{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`)})}, nil},
	{"arguments cut off by the limit", events(start,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"at\": \"th"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, stop),
		llm.Reply{Stop: llm.StopLength, Message: say(thread.ToolCall{ID: "toolu_1", Name: "look", Arguments: `{"at": "th`})}, nil},
	{"no message_stop, no last empty line", strings.TrimSuffix(events(start, end), "\n\n"), llm.Reply{Stop: llm.StopEnd, Message: say()}, nil},
	{"events after the end are not read", events(start, end, stop) + "data: garbage\n\n", llm.Reply{Stop: llm.StopEnd, Message: say()}, nil},
	{"no stop reason", events(start), llm.Reply{}, io.ErrUnexpectedEOF},
	{"cut in an event", events(start) + `data: {"type":"message_de`, llm.Reply{}, io.ErrUnexpectedEOF},
	{"error event", events(start, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), llm.Reply{}, llm.ErrOverloaded},
	{"overflow event", events(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`), llm.Reply{}, llm.ErrOverflow},
	{"a piece of no block", events(start, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`), llm.Reply{}, llm.ErrResponse},
	{"a block twice", events(start, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text"}}`), llm.Reply{}, llm.ErrResponse},
	{"nothing", "", llm.Reply{}, llm.ErrResponse},
	{"pings only", events(`{"type":"ping"}`), llm.Reply{}, llm.ErrResponse},
}

func say(parts ...thread.Part) thread.Message {
	return thread.Message{Role: thread.Assistant, Parts: parts}
}

func raw(s string) thread.Source { return thread.Source{API: "anthropic", Raw: s} }

func TestStream(t *testing.T) {
	for _, test := range streams {
		a, _, err := readStream(response(test.body), nil)
		if test.err != nil || err != nil {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
			continue
		}
		got, err := a.reply(response(""), &question{})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		test.want.RequestID = "req_1"
		if diff := cmp.Diff(&test.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(llm.Reply{}, "Model", "Usage")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Some gateways send zeros in one of the events.
func TestStreamUsage(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want llm.Usage
	}{
		"usual":           {events(start, end, stop), llm.Usage{Input: 10, Output: 7, Known: true}},
		"all at the end":  {events(`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":7}}`), llm.Usage{Input: 17, CacheRead: 5, CacheWrite: 2, Output: 7, Known: true}},
		"zero at the end": {events(start, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":7}}`), llm.Usage{Input: 10, Output: 7, Known: true}},
		"none":            {events(`{"type":"message_start","message":{}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), llm.Usage{}},
		"zeros":           {events(`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":0}}`), llm.Usage{}},
		"nonsense":        {events(`{"type":"message_start","message":{"usage":{"input_tokens":"ten","output_tokens":-4}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":null}`), llm.Usage{}},
	} {
		a, _, err := readStream(response(test.body), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, a.usage.counts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, test := range streams {
		f.Add(test.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text := ""
		a, delivered, err := readStream(response(body), func(d llm.Delta) { text += d.Text })
		if text != "" && !delivered {
			t.Fatal("text was handed on and not owned up to")
		}
		quiet, _, err2 := readStream(response(body), nil)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v with a listener, %v without", err, err2)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(a.blocks, quiet.blocks); diff != "" {
			t.Fatal(diff)
		}
		if r, err := a.reply(response(""), &question{}); err == nil && r.Message.Role != thread.Assistant {
			t.Fatal("a reply of nobody")
		}
	})
}

func FuzzWhole(f *testing.F) {
	f.Add(`{"type":"message","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}`)
	f.Add(`{"content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}`)
	f.Add(`{"error":{"message":"x"}}`)
	f.Fuzz(func(t *testing.T, body string) {
		a, err := readWhole(response(body))
		if err != nil {
			return
		}
		if r, err := a.reply(response(""), &question{schema: &llm.Schema{JSON: `{"type":"object"}`}}); err == nil && r.JSON != "" && r.JSON[0] != '{' {
			t.Fatalf("%q is no object", r.JSON)
		}
	})
}
