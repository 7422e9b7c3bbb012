package openai

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const done = "[DONE]"

var streams = []struct {
	name, body string
	message    string // as built up
	stop       llm.Stop
	err        error
}{
	{"text", events(delta(`{"role":"assistant","content":"a"}`), delta(`{"content":"<b>"}`), finish("stop"), done), `{"content":"a<b>"}`, llm.StopEnd, nil},
	{"no finish reason", events(delta(`{"content":"a"}`), done), `{"content":"a"}`, llm.StopEnd, nil},
	{"no DONE", events(delta(`{"content":"a"}`), finish("length")), `{"content":"a"}`, llm.StopLength, nil},
	{"DONE without a line end", events(delta(`{"content":"a"}`)) + "data: [DONE]", `{"content":"a"}`, llm.StopEnd, nil},
	{"DONE in the event's name too", "event: done\n" + events(delta(`{"content":"a"}`), done) + "garbage", `{"content":"a"}`, llm.StopEnd, nil},
	{"calls by index", events(
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`),
		delta(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{"}}]}`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"}"}}]}`),
		finish("tool_calls"), done),
		`{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`, llm.StopTool, nil},
	{"calls that share an index", events(
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
		delta(`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`), finish("stop"), done),
		`{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, llm.StopTool, nil},
	{"calls without an index", events(
		delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
		delta(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"x":1}},"extra_content":{"google":{"thought_signature":"s"}}}]}`), finish("tool_calls"), done),
		`{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\":1}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`, llm.StopTool, nil},
	{"custom call", events(
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x "}}]}`), delta(`{"tool_calls":[{"index":0,"custom":{"input":"y"}}]}`), finish("tool_calls"), done),
		`{"content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x y"}}]}`, llm.StopTool, nil},
	{"legacy call", events(
		delta(`{"function_call":{"name":"f","arguments":"{"}}`), delta(`{"function_call":{"arguments":"}"}}`), finish("function_call"), done),
		`{"content":null,"function_call":{"name":"f","arguments":"{}"}}`, llm.StopTool, nil},
	{"reasoning twice", events(delta(`{"reasoning":"a","reasoning_content":"a"}`), delta(`{"reasoning":"b","reasoning_content":"b"}`), delta(`{"content":"c"}`), finish("stop"), done),
		`{"content":"c","reasoning":"ab"}`, llm.StopEnd, nil},
	{"reasoning details", events(delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`), delta(`{"content":"c"}`), finish("stop"), done),
		`{"content":"c","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`, llm.StopEnd, nil},
	{"refusal", events(delta(`{"refusal":"I will "}`), delta(`{"refusal":"not."}`), finish("stop"), done), `{"content":null,"refusal":"I will not."}`, llm.StopRefusal, nil},
	{"filter", events(delta(`{"content":"a"}`), finish("content_filter"), done), `{"content":"a"}`, llm.StopFilter, nil},
	{"Azure's first event", events(`{"choices":[],"prompt_filter_results":[]}`, delta(`{"content":"a"}`), finish("stop"), done), `{"content":"a"}`, llm.StopEnd, nil},
	{"cut off", events(delta(`{"content":"a"}`)), "", "", io.ErrUnexpectedEOF},
	{"error event", events(delta(`{"content":"a"}`), `{"error":{"message":"no capacity","code":503}}`), "", "", llm.ErrOverloaded},
	{"error in the choice", events(`{"choices":[{"error":{"message":"slow down","code":429},"delta":{},"finish_reason":"error"}]}`), "", "", llm.ErrRateLimited},
	{"error as a reason", events(delta(`{"content":"a"}`), finish("error"), done), "", "", llm.ErrServer},
	{"only DONE", events(done), "", "", llm.ErrResponse},
	{"nothing", "", "", "", llm.ErrResponse},
}

func TestStream(t *testing.T) {
	for _, test := range streams {
		a, _, err := readStream("openai", response(test.body), nil)
		var r *llm.Reply
		if err == nil {
			r, err = a.reply(response(""), nil)
		}
		if test.err != nil || err != nil {
			if !errors.Is(err, test.err) {
				t.Errorf("%s: %v, want %v", test.name, err, test.err)
			}
			continue
		}
		if a.message != test.message || r.Stop != test.stop {
			t.Errorf("%s: stop %q, message %s\nwant %q, %s", test.name, r.Stop, a.message, test.stop, test.message)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want llm.Usage
	}{
		"OpenAI":        {`{"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":20}}}`, llm.Usage{Input: 100, Output: 30, CacheRead: 64, Reasoning: 20, Known: true}},
		"DeepSeek":      {`{"usage":{"prompt_tokens":100,"completion_tokens":30,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}}`, llm.Usage{Input: 100, Output: 30, CacheRead: 60, Known: true}},
		"xAI":           {`{"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":130,"completion_tokens_details":{"reasoning_tokens":20}}}`, llm.Usage{Input: 100, Output: 30, Reasoning: 20, Known: true}},
		"in the choice": {`{"choices":[{"delta":{},"usage":{"prompt_tokens":5,"completion_tokens":2}}]}`, llm.Usage{Input: 5, Output: 2, Known: true}},
		"zeros":         {`{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, llm.Usage{}},
		"null":          {`{"usage":null}`, llm.Usage{}},
		"nonsense":      {`{"usage":{"prompt_tokens":"many","completion_tokens":-3}}`, llm.Usage{}},
	} {
		a, _, err := readStream("openai", response(events(delta(`{"content":"a"}`), test.body, finish("stop"), done)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(test.want, a.usage); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestStrictSchema(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                                                          true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{},"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`:                    true,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`:                                                              true,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"required":["a"],"additionalProperties":false,"$defs":{"b":{"type":"string"}}}`:                                                       true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                                       false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`:                                                                                             false,
		`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`:                                                                                                               false,
		`{"type":"object","properties":{"a":{"type":["object","null"]}},"required":["a"],"additionalProperties":false}`:                                                                                 false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":3}},"required":["a"],"additionalProperties":false}`:                                                                            false,
		`{"type":"object","properties":{"a":true},"required":["a"],"additionalProperties":false}`:                                                                                                       false,
		`{"type":"object","anyOf":[],"properties":{},"additionalProperties":false}`:                                                                                                                     false,
		`{"type":"array","items":{"type":"string"}}`:                                                                                                                                                    false,
		`{"type":"object","properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 3000) + `{"type":"string"}` + strings.Repeat("}", 3000) + `},"required":["a"],"additionalProperties":false}`: false,
	} {
		if got := strictSchema(schema); got != want {
			t.Errorf("%.150s: %v", schema, got)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, test := range streams {
		f.Add(test.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text := ""
		a, delivered, err := readStream("openai", response(body), func(d llm.Delta) { text += d.Text })
		if text != "" && !delivered {
			t.Fatal("text was handed on and not owned up to")
		}
		quiet, _, err2 := readStream("openai", response(body), nil)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v with a listener, %v without", err, err2)
		}
		if err != nil {
			return
		}
		if a.message != quiet.message {
			t.Fatalf("%s with a listener, %s without", a.message, quiet.message)
		}
		// Bytes that are no UTF-8 cannot be kept in a message, one U+FFFD stands
		// for each.
		if r, err := a.reply(response(""), nil); err == nil && (r.Message.Role != thread.Assistant || r.Text != string([]rune(text))) {
			t.Fatalf("text %q, pieces %q", r.Text, text)
		}
	})
}

func FuzzWhole(f *testing.F) {
	f.Add(`{"model":"m","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`)
	f.Add(`{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`)
	f.Add(`{"error":"x"}`)
	f.Fuzz(func(t *testing.T, body string) {
		a, err := readWhole("openai", response(body))
		if err != nil {
			return
		}
		if r, err := a.reply(response(""), &llm.Schema{JSON: `{"type":"object"}`}); err == nil && r.JSON != "" && r.JSON[0] != '{' {
			t.Fatalf("%q is no object", r.JSON)
		}
	})
}
