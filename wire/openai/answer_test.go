package openai_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

func TestAnswers(t *testing.T) {
	wiretest.TestAnswers(t, openai.Chat{}, wiretest.Corpus(t, wire.Chat))
	wiretest.TestAnswers(t, openai.Responses{}, wiretest.Corpus(t, wire.Responses))
}

func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func finish(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

const done = "[DONE]"

var chatStreams = []struct {
	name    string
	events  []string
	message string // the element of later requests
	stop    wire.Stop
}{
	{"text", []string{delta(`{"role":"assistant","content":"a"}`), delta(`{"content":"<b>"}`), finish("stop"), done}, `{"role":"assistant","content":"a<b>"}`, wire.StopEnd},
	{"no finish reason", []string{delta(`{"content":"a"}`), done}, `{"role":"assistant","content":"a"}`, wire.StopEnd},
	{"no DONE", []string{delta(`{"content":"a"}`), finish("length")}, `{"role":"assistant","content":"a"}`, wire.StopLength},
	{"calls by index", []string{
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`),
		delta(`{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{"}}]}`),
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}},{"index":1,"function":{"arguments":"}"}}]}`),
		finish("tool_calls"), done},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`, wire.StopTool},
	{"calls that share an index", []string{
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`),
		delta(`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`), finish("stop"), done},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`, wire.StopTool},
	{"calls without an index", []string{
		delta(`{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`), delta(`{"tool_calls":[{"function":{"arguments":"}"}}]}`),
		delta(`{"tool_calls":[{"id":"b","function":{"name":"g","arguments":{"x":1}},"extra_content":{"google":{"thought_signature":"s"}}}]}`), finish("tool_calls"), done},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{\"x\":1}"},"extra_content":{"google":{"thought_signature":"s"}}}]}`, wire.StopTool},
	{"custom call", []string{
		delta(`{"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"f","input":"x "}}]}`), delta(`{"tool_calls":[{"index":0,"custom":{"input":"y"}}]}`), finish("tool_calls"), done},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x y"}}]}`, wire.StopTool},
	{"legacy call", []string{
		delta(`{"function_call":{"name":"f","arguments":"{"}}`), delta(`{"function_call":{"arguments":"}"}}`), finish("function_call"), done},
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, wire.StopTool},
	{"reasoning twice", []string{delta(`{"reasoning":"a","reasoning_content":"a"}`), delta(`{"reasoning":"b","reasoning_content":"b"}`), delta(`{"content":"c"}`), finish("stop"), done},
		`{"role":"assistant","content":"c","reasoning":"ab"}`, wire.StopEnd},
	{"reasoning details", []string{delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`), delta(`{"content":"c"}`), finish("stop"), done},
		`{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]}`, wire.StopEnd},
	{"reasoning details in pieces", []string{
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":"The","signature":null,"format":"f","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":" user","format":"f","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":" asks","format":"f","index":0},{"type":"reasoning.summary","summary":"A","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":null,"signature":"s","format":"f","index":0},{"type":"reasoning.summary","summary":"B","index":0,"id":"x"}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":"More","index":1},"?"]}`),
		delta(`{"content":"c"}`), finish("stop"), done},
		`{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.text","text":"The user asks","signature":"s","format":"f","index":0},{"type":"reasoning.summary","summary":"AB","index":0,"id":"x"},{"type":"reasoning.text","text":"More","index":1},"?"]}`, wire.StopEnd},
	{"reasoning details that are whole", []string{
		delta(`{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s","index":0},{"type":"reasoning.text","text":"b","signature":"t","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"x","id":"1","index":0},{"type":"reasoning.encrypted","data":"y","id":"2","index":0}]}`),
		delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.summary","summary":"b"}]}`),
		delta(`{"content":"c"}`), finish("stop"), done},
		`{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s","index":0},{"type":"reasoning.text","text":"b","signature":"t","index":0},{"type":"reasoning.encrypted","data":"x","id":"1","index":0},{"type":"reasoning.encrypted","data":"y","id":"2","index":0},{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.summary","summary":"b"}]}`, wire.StopEnd},
	{"refusal", []string{delta(`{"refusal":"I will "}`), delta(`{"refusal":"not."}`), finish("stop"), done}, `{"role":"assistant","content":null,"refusal":"I will not."}`, wire.StopRefusal},
	{"filter", []string{delta(`{"content":"a"}`), finish("content_filter"), done}, `{"role":"assistant","content":"a"}`, wire.StopFilter},
	{"Azure's first event", []string{`{"choices":[],"prompt_filter_results":[]}`, delta(`{"content":"a"}`), finish("stop"), done}, `{"role":"assistant","content":"a"}`, wire.StopEnd},
	{"not at its end", []string{delta(`{"content":"a"}`)}, `{"role":"assistant","content":"a"}`, ""},
}

// read adds up a stream.
func read(api wire.Answers, events ...string) (wire.Answer, error) {
	s := api.NewStream()
	for _, e := range events {
		if _, err := s.Event(e); err != nil {
			return wire.Answer{}, err
		}
	}
	return s.Answer()
}

func TestChatStream(t *testing.T) {
	for _, test := range chatStreams {
		a, err := read(openai.Chat{}, test.events...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if a.Message.Frame.Raw() != test.message || a.Stop != test.stop {
			t.Errorf("%s: stop %q, message %s\nwant %q, %s", test.name, a.Stop, a.Message.Frame.Raw(), test.stop, test.message)
		}
	}
	piece := func(member string) string {
		return delta(`{"reasoning_details":[{"type":"reasoning.text",` + member + `,"index":0}]}`)
	}
	streamed, err := read(openai.Chat{}, piece(`"text":"The"`), piece(`"text":" user"`), piece(`"signature":"s"`), delta(`{"content":"c"}`), finish("stop"), done)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := openai.Chat{}.DecodeAnswer([]byte(`{"choices":[{"message":{"role":"assistant","content":"c","reasoning_details":[{"type":"reasoning.text","text":"The user","index":0,"signature":"s"}]},"finish_reason":"stop"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if thread.ChainID("", &streamed.Message) != thread.ChainID("", &whole.Message) {
		t.Errorf("an answer in pieces is %+v, in one %+v", streamed.Message.Parts, whole.Message.Parts)
	}
	for name, events := range map[string][]string{"only DONE": {done}, "nothing": nil} {
		if _, err := read(openai.Chat{}, events...); !errors.Is(err, wire.ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Some servers leave out the role, or send another.
func TestChatAnswerOfNobody(t *testing.T) {
	for role, want := range map[string]string{
		``:               `{"content":"a","role":"assistant"}`,
		`"role":"tool",`: `{"role":"assistant","content":"a"}`,
		`"role":null,`:   `{"role":"assistant","content":"a"}`,
	} {
		a, err := openai.Chat{}.DecodeAnswer([]byte(`{"choices":[{"message":{` + role + `"content":"a"},"finish_reason":"stop"}]}`))
		if err != nil || a.Message.Text() != "a" || a.Message.Frame.Raw() != want {
			t.Errorf("%s: %+v, %v", role, a, err)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want wire.Usage
	}{
		"OpenAI":        {`{"usage":{"prompt_tokens":100,"completion_tokens":30,"total_tokens":130,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":20}}}`, wire.Usage{Input: 100, Output: 30, CacheRead: 64, Reasoning: 20, Known: true}},
		"DeepSeek":      {`{"usage":{"prompt_tokens":100,"completion_tokens":30,"prompt_cache_hit_tokens":60,"prompt_cache_miss_tokens":40}}`, wire.Usage{Input: 100, Output: 30, CacheRead: 60, Known: true}},
		"xAI":           {`{"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":130,"completion_tokens_details":{"reasoning_tokens":20}}}`, wire.Usage{Input: 100, Output: 30, Reasoning: 20, Known: true}},
		"in the choice": {`{"choices":[{"delta":{},"usage":{"prompt_tokens":5,"completion_tokens":2}}]}`, wire.Usage{Input: 5, Output: 2, Known: true}},
		"zeros":         {`{"usage":{"prompt_tokens":0,"completion_tokens":0}}`, wire.Usage{}},
		"null":          {`{"usage":null}`, wire.Usage{}},
		"nonsense":      {`{"usage":{"prompt_tokens":"many","completion_tokens":-3}}`, wire.Usage{}},
	} {
		a, err := read(openai.Chat{}, delta(`{"content":"a"}`), test.body, finish("stop"), done)
		if err != nil || a.Usage != test.want {
			t.Errorf("%s: %+v, %v", name, a.Usage, err)
		}
	}
}

var responseStreams = []struct {
	name   string
	events []string
	text   string
	stop   wire.Stop
}{
	{"completed", []string{`{"type":"response.created","response":{"status":"in_progress","error":null}}`,
		`{"type":"response.completed","response":{"status":"completed","error":null,"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}]}}`},
		"a\nb", wire.StopEnd},
	{"items only as they were done", []string{
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}}`,
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`},
		"a", wire.StopEnd},
	{"nothing said", []string{`{"type":"response.completed","response":{"status":"completed","output":[]}}`}, "", wire.StopEnd},
	{"filtered", []string{`{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}}`}, "", wire.StopFilter},
	{"call", []string{`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}}`}, "", wire.StopTool},
	{"items of a kind unknown", []string{`{"type":"response.completed","response":{"status":"completed","output":[{"type":"novelty","x":1}]}}`}, "", wire.StopEnd},
	{"a tool that ran at the provider", []string{`{"type":"response.completed","response":{"status":"completed","output":[{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x"}]},{"type":"message","role":"assistant","content":"a"}]}}`}, "a", wire.StopEnd},
	{"and calls that wait", []string{`{"type":"response.completed","response":{"status":"completed","output":[{"type":"program","call_id":"a","code":"x"},{"type":"program_output","call_id":"a","result":"1"},{"type":"function_call","call_id":"b","name":"f","arguments":"{}"}]}}`}, "", wire.StopTool},
	{"cancelled", []string{`{"type":"response.cancelled","response":{"status":"cancelled","output":[]}}`}, "", wire.StopOther},
	{"not at its end", []string{`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.output_item.done","item":{"type":"message","role":"assistant","content":"a"}}`}, "a", ""},
}

func TestResponseStream(t *testing.T) {
	for _, test := range responseStreams {
		a, err := read(openai.Responses{}, test.events...)
		if err != nil || a.Message.Text() != test.text || a.Stop != test.stop {
			t.Errorf("%s: %+v, %v", test.name, a, err)
		}
	}
	for name, events := range map[string][]string{
		"another API":            {finish("stop"), done},
		"no output":              {`{"type":"response.completed","response":{"status":"completed"}}`},
		"output that is none":    {`{"type":"response.completed","response":{"status":"completed","output":[7]}}`},
		"words of somebody else": {`{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","role":"user","content":"a"}]}}`},
	} {
		if a, err := read(openai.Responses{}, events...); !errors.Is(err, wire.ErrAnswer) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestHostedInAnswer: what ran at the provider is the model's, and a call with its result.
func TestHostedInAnswer(t *testing.T) {
	a, err := openai.Responses{}.DecodeAnswer([]byte(`{"status":"completed","output":[{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"shell_call_output","call_id":"a","output":[{"stdout":"x"}]},{"type":"shell_call","call_id":"b","action":{"commands":["pwd"]}}]}`))
	if err != nil || len(a.Message.Parts) != 3 {
		t.Fatalf("%+v, %v", a, err)
	}
	call, _ := a.Message.Parts[0].(thread.Opaque)
	result, _ := a.Message.Parts[1].(thread.Opaque)
	_, waits := a.Message.Parts[2].(thread.ToolCall)
	if call.Call != "a" || call.Answers || call.Tool != "shell" || call.Text != "ls" || result.Call != "a" || !result.Answers || result.Text != "x" || !waits {
		t.Errorf("got %+v", a.Message.Parts)
	}
}

// A count that holds what the provider's own tools brought is not of the prompt.
func TestResponseUsage(t *testing.T) {
	for item, mixed := range map[string]bool{`{"type":"message","role":"assistant","content":"a"}`: false, `{"type":"web_search_call","id":"ws_1"}`: true, `{"type":"compaction","encrypted_content":"x"}`: true} {
		a, err := openai.Responses{}.DecodeAnswer([]byte(`{"status":"completed","output":[` + item + `],"usage":{"input_tokens":10,"output_tokens":1}}`))
		if want := (wire.Usage{Input: 10, Output: 1, Known: true, Mixed: mixed}); err != nil || a.Usage != want {
			t.Errorf("%s: %+v, %v", item, a.Usage, err)
		}
	}
}

func FuzzChatStream(f *testing.F) {
	var seeds []string
	for _, test := range chatStreams {
		seeds = append(seeds, strings.Join(test.events, "\n"))
	}
	wiretest.FuzzStream(f, openai.Chat{}, append(seeds, `{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}}]}`)...)
}

func FuzzResponseStream(f *testing.F) {
	var seeds []string
	for _, test := range responseStreams {
		seeds = append(seeds, strings.Join(test.events, "\n"))
	}
	wiretest.FuzzStream(f, openai.Responses{}, append(seeds, `{"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`)...)
}
