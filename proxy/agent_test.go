package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var apis = []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini}

// agent is a client of one API that knows nothing but HTTP and JSON: it keeps
// its whole history and sends it with every request.
type agent struct {
	t       testing.TB
	api     string
	url     string // of the server, without a path
	client  *http.Client
	stream  bool
	model   string
	header  http.Header
	history []string // elements of the messages array, as JSON
	think   bool
	tools   []string // names
	system  string
	output  int    // tokens
	stored  bool   // the provider keeps the answers (Responses)
	native  string // further members of the body, with a comma before each
	large   bool   // results of twice the size: for limits that do not go down with the window
}

func newAgent(t testing.TB, api, url string, stream bool) *agent {
	return &agent{t: t, api: api, url: url, client: http.DefaultClient, stream: stream, model: "test-model", header: http.Header{},
		tools: []string{"read_file", "run"}, system: "You are a careful agent. Work step by step.", output: 2048}
}

// said is an answer as the client understood it.
type said struct {
	status  int
	header  http.Header
	element string // for the history
	text    string
	calls   []thread.ToolCall
	stop    string
	input   int64 // tokens, as the usage says
	output  int64
	whole   gjson.Result // the answer in one piece
	raw     []byte
}

func (a *agent) user(text string) {
	q := rawjson.Quote(text)
	switch a.api {
	case wire.Anthropic:
		a.history = append(a.history, `{"role":"user","content":[{"type":"text","text":`+q+`}]}`)
	case wire.Chat:
		a.history = append(a.history, `{"role":"user","content":`+q+`}`)
	case wire.Responses:
		a.history = append(a.history, `{"type":"message","role":"user","content":[{"type":"input_text","text":`+q+`}]}`)
	default:
		a.history = append(a.history, `{"role":"user","parts":[{"text":`+q+`}]}`)
	}
}

// results answers calls, all at once.
func (a *agent) results(calls []thread.ToolCall, text func(thread.ToolCall) string) {
	var list []string
	for _, c := range calls {
		q := rawjson.Quote(text(c))
		switch a.api {
		case wire.Anthropic:
			list = append(list, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%s}`, c.ID, q))
		case wire.Chat:
			a.history = append(a.history, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, c.ID, q))
		case wire.Responses:
			a.history = append(a.history, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%s}`, c.ID, q))
		default:
			list = append(list, fmt.Sprintf(`{"functionResponse":{"name":%q,"response":{"output":%s}}}`, c.Name, q))
		}
	}
	switch a.api {
	case wire.Anthropic:
		a.history = append(a.history, `{"role":"user","content":[`+strings.Join(list, ",")+`]}`)
	case wire.Gemini:
		a.history = append(a.history, `{"role":"user","parts":[`+strings.Join(list, ",")+`]}`)
	}
}

// body is the request.
func (a *agent) body() []byte {
	var tools []string
	const schema = `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	for _, name := range a.tools {
		switch a.api {
		case wire.Anthropic:
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"A tool.","input_schema":%s}`, name, schema))
		case wire.Chat:
			tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":"A tool.","parameters":%s}}`, name, schema))
		case wire.Responses:
			tools = append(tools, fmt.Sprintf(`{"type":"function","name":%q,"description":"A tool.","parameters":%s,"strict":false}`, name, schema))
		default:
			tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"A tool.","parameters":%s}`, name, schema))
		}
	}
	system, history, list := rawjson.Quote(a.system), a.history, strings.Join(tools, ",")
	switch a.api {
	case wire.Anthropic:
		last := len(history) - 1
		history = append(history[:last:last], marked(history[last]))
		extra := a.native
		if a.think {
			extra += `,"thinking":{"type":"enabled","budget_tokens":1024}`
		}
		return fmt.Appendf(nil, `{"model":%q,"max_tokens":%d,"stream":%t,"system":[{"type":"text","text":%s,"cache_control":{"type":"ephemeral"}}],"tools":[%s]%s,"messages":[%s]}`,
			a.model, a.output, a.stream, system, list, extra, strings.Join(history, ","))
	case wire.Chat:
		options := ""
		if a.stream {
			options = `,"stream":true,"stream_options":{"include_usage":true}`
		}
		return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"system","content":%s},%s],"tools":[%s],"max_completion_tokens":2048%s}`,
			a.model, system, strings.Join(history, ","), list, options)
	case wire.Responses:
		return fmt.Appendf(nil, `{"model":%q,"instructions":%s,"input":[%s],"tools":[%s],"max_output_tokens":2048,"store":%t,"include":["reasoning.encrypted_content"],"stream":%t%s}`,
			a.model, system, strings.Join(history, ","), list, a.stored, a.stream, a.native)
	}
	return fmt.Appendf(nil, `{"systemInstruction":{"parts":[{"text":%s}]},"contents":[%s],"tools":[{"functionDeclarations":[%s]}],"generationConfig":{"maxOutputTokens":2048}}`,
		system, strings.Join(history, ","), list)
}

// marked moves the client's cache mark to the last block, as agents do.
func marked(element string) string {
	n := len(gjson.Get(element, "content").Array()) - 1
	out, _ := sjson.SetRaw(element, fmt.Sprintf("content.%d.cache_control", n), `{"type":"ephemeral"}`)
	return out
}

func (a *agent) path() string {
	switch a.api {
	case wire.Anthropic:
		return "/v1/messages?beta=true"
	case wire.Chat:
		return "/v1/chat/completions"
	case wire.Responses:
		return "/v1/responses"
	}
	if a.stream {
		return "/v1beta/models/" + a.model + ":streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/" + a.model + ":generateContent"
}

// ask sends the history and adds the answer to it.
func (a *agent) ask() said {
	a.t.Helper()
	s, err := a.try()
	if err != nil {
		a.t.Fatal(err)
	}
	if s.status == http.StatusOK {
		a.take(s)
	}
	return s
}

func (a *agent) take(s said) {
	if a.api == wire.Responses {
		for _, item := range gjson.Parse(s.element).Array() {
			a.history = append(a.history, item.Raw)
		}
		return
	}
	a.history = append(a.history, s.element)
}

func (a *agent) try() (said, error) {
	r, err := http.NewRequest(http.MethodPost, a.url+a.path(), bytes.NewReader(a.body()))
	if err != nil {
		return said{}, err
	}
	r.Header = a.header.Clone()
	r.Header.Set("Content-Type", "application/json")
	res, err := a.client.Do(r)
	if err != nil {
		return said{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return said{}, err
	}
	s := said{status: res.StatusCode, header: res.Header, raw: raw}
	if res.StatusCode == http.StatusOK {
		a.understand(&s)
	}
	return s, nil
}

func (a *agent) understand(s *said) {
	a.t.Helper()
	whole := gjson.ParseBytes(s.raw)
	if a.stream {
		whole = gjson.Parse(a.assembled(s.raw))
	}
	s.whole = whole
	if whole.Get("error").IsObject() {
		a.t.Fatalf("an error in the answer: %s", whole.Get("error").Raw)
	}
	switch a.api {
	case wire.Anthropic:
		s.element = `{"role":"assistant","content":` + whole.Get("content").Raw + `}`
		s.stop = whole.Get("stop_reason").Str
		for _, b := range whole.Get("content").Array() {
			switch b.Get("type").Str {
			case "text":
				s.text += b.Get("text").Str
			case "tool_use":
				s.calls = append(s.calls, thread.ToolCall{ID: b.Get("id").Str, Name: b.Get("name").Str, Arguments: b.Get("input").Raw})
			}
		}
		s.input, s.output = whole.Get("usage.input_tokens").Int(), whole.Get("usage.output_tokens").Int()
	case wire.Chat:
		m := whole.Get("choices.0.message")
		s.element, s.text, s.stop = m.Raw, m.Get("content").Str, whole.Get("choices.0.finish_reason").Str
		for _, c := range m.Get("tool_calls").Array() {
			s.calls = append(s.calls, thread.ToolCall{ID: c.Get("id").Str, Name: c.Get("function.name").Str, Arguments: c.Get("function.arguments").Str})
		}
		s.input, s.output = whole.Get("usage.prompt_tokens").Int(), whole.Get("usage.completion_tokens").Int()
	case wire.Responses:
		s.element, s.stop = whole.Get("output").Raw, whole.Get("status").Str
		for _, item := range whole.Get("output").Array() {
			switch item.Get("type").Str {
			case "message":
				s.text += item.Get("content.0.text").Str
			case "function_call":
				s.calls = append(s.calls, thread.ToolCall{ID: item.Get("call_id").Str, Name: item.Get("name").Str, Arguments: item.Get("arguments").Str})
			}
		}
		s.input, s.output = whole.Get("usage.input_tokens").Int(), whole.Get("usage.output_tokens").Int()
	default:
		s.element, s.stop = whole.Get("candidates.0.content").Raw, whole.Get("candidates.0.finishReason").Str
		for _, p := range whole.Get("candidates.0.content.parts").Array() {
			if c := p.Get("functionCall"); c.Exists() {
				s.calls = append(s.calls, thread.ToolCall{ID: c.Get("name").Str, Name: c.Get("name").Str, Arguments: c.Get("args").Raw})
			} else if !p.Get("thought").Bool() {
				s.text += p.Get("text").Str
			}
		}
		s.input, s.output = whole.Get("usageMetadata.promptTokenCount").Int(), whole.Get("usageMetadata.candidatesTokenCount").Int()
	}
}

// assembled makes of a stream what a request without one would have answered.
func (a *agent) assembled(raw []byte) string {
	a.t.Helper()
	r := sse.NewReader(bytes.NewReader(raw), 0)
	var events []gjson.Result
	for {
		e, err := r.Next()
		if err == io.EOF && e.Data == "" {
			break
		}
		if err != nil {
			a.t.Fatalf("the stream is broken: %v", err)
		}
		if e.Data == "" {
			continue
		}
		if e.Data == "[DONE]" {
			break
		}
		if !gjson.Valid(e.Data) {
			a.t.Fatalf("an event is no JSON: %s", e.Data)
		}
		if name := gjson.Get(e.Data, "type").Str; e.Name != "" && e.Name != name {
			a.t.Errorf("event %q holds %q", e.Name, name)
		}
		events = append(events, gjson.Parse(e.Data))
	}
	switch a.api {
	case wire.Anthropic:
		return assembledMessage(a.t, events)
	case wire.Chat:
		return assembledChat(events)
	case wire.Responses:
		return assembledResponse(a.t, events)
	}
	out := `{"candidates":[{"content":{"role":"model","parts":[]}}]}`
	for _, e := range events {
		for _, p := range e.Get("candidates.0.content.parts").Array() {
			out, _ = sjson.SetRaw(out, "candidates.0.content.parts.-1", p.Raw)
		}
		if v := e.Get("candidates.0.finishReason"); v.Exists() {
			out, _ = sjson.SetRaw(out, "candidates.0.finishReason", v.Raw)
		}
		out, _ = sjson.SetRaw(out, "usageMetadata", e.Get("usageMetadata").Raw)
	}
	return out
}

func assembledMessage(t testing.TB, events []gjson.Result) string {
	t.Helper()
	out, inputs, open := "", map[int64]string{}, int64(-1)
	for n, e := range events {
		i := e.Get("index").Int()
		at := fmt.Sprintf("content.%d", i)
		switch e.Get("type").Str {
		case "message_start":
			if n != 0 {
				t.Fatal("a second message_start")
			}
			out = e.Get("message").Raw
		case "content_block_start":
			if have := len(gjson.Get(out, "content").Array()); open != -1 || int(i) != have {
				t.Fatalf("block %d begins after %d blocks, %d is open", i, have, open)
			}
			open = i
			out, _ = sjson.SetRaw(out, at, e.Get("content_block").Raw)
		case "content_block_delta":
			if i != open {
				t.Fatalf("a delta of block %d, %d is open", i, open)
			}
			switch d := e.Get("delta"); d.Get("type").Str {
			case "text_delta":
				out, _ = sjson.Set(out, at+".text", gjson.Get(out, at+".text").Str+d.Get("text").Str)
			case "thinking_delta":
				out, _ = sjson.Set(out, at+".thinking", gjson.Get(out, at+".thinking").Str+d.Get("thinking").Str)
			case "signature_delta":
				out, _ = sjson.Set(out, at+".signature", d.Get("signature").Str)
			case "compaction_delta":
				out, _ = sjson.SetRaw(out, at+".content", d.Get("content").Raw)
				out, _ = sjson.SetRaw(out, at+".encrypted_content", d.Get("encrypted_content").Raw)
			case "input_json_delta":
				inputs[i] += d.Get("partial_json").Str
			}
		case "content_block_stop":
			if s := inputs[i]; s != "" {
				out, _ = sjson.SetRaw(out, at+".input", s)
			}
			open = -1
		case "message_delta":
			out, _ = sjson.SetRaw(out, "stop_reason", e.Get("delta.stop_reason").Raw)
			if c := e.Get("context_management"); c.Exists() {
				out, _ = sjson.SetRaw(out, "context_management", c.Raw)
			}
			e.Get("usage").ForEach(func(k, v gjson.Result) bool {
				out, _ = sjson.SetRaw(out, "usage."+k.Str, v.Raw)
				return true
			})
		case "message_stop":
			if n != len(events)-1 {
				t.Fatal("events after message_stop")
			}
		case "error":
			return e.Raw
		}
	}
	return out
}

func assembledChat(events []gjson.Result) string {
	out, text, reasoning, calls := `{"choices":[{"index":0,"message":{"role":"assistant","content":null}}]}`, "", "", []string{}
	for _, e := range events {
		if e.Get("error").Exists() {
			return e.Raw
		}
		d := e.Get("choices.0.delta")
		text += d.Get("content").Str
		reasoning += d.Get("reasoning_content").Str
		for _, c := range d.Get("tool_calls").Array() {
			i := int(c.Get("index").Int())
			for len(calls) <= i {
				calls = append(calls, `{"id":"","type":"function","function":{"name":"","arguments":""}}`)
			}
			for _, path := range []string{"id", "function.name", "function.arguments"} {
				if v := c.Get(path); v.Exists() {
					calls[i], _ = sjson.Set(calls[i], path, gjson.Get(calls[i], path).Str+v.Str)
				}
			}
		}
		if v := e.Get("choices.0.finish_reason"); v.Type == gjson.String {
			out, _ = sjson.SetRaw(out, "choices.0.finish_reason", v.Raw)
		}
		if v := e.Get("usage"); v.IsObject() {
			out, _ = sjson.SetRaw(out, "usage", v.Raw)
		}
	}
	if text != "" {
		out, _ = sjson.Set(out, "choices.0.message.content", text)
	}
	if reasoning != "" {
		out, _ = sjson.Set(out, "choices.0.message.reasoning_content", reasoning)
	}
	if len(calls) > 0 {
		out, _ = sjson.SetRaw(out, "choices.0.message.tool_calls", "["+strings.Join(calls, ",")+"]")
	}
	return out
}

// assembledResponse takes the last event's answer, and checks that the items
// which were streamed are those in it.
func assembledResponse(t testing.TB, events []gjson.Result) string {
	t.Helper()
	var items []string
	for n, e := range events {
		if got := e.Get("sequence_number"); got.Exists() && got.Int() != int64(n) {
			t.Fatalf("event %d has the number %d", n, got.Int())
		}
		switch e.Get("type").Str {
		case "response.output_item.added":
			if e.Get("output_index").Int() != int64(len(items)) {
				t.Fatalf("item %d is announced as %d", len(items), e.Get("output_index").Int())
			}
		case "response.output_item.done":
			items = append(items, e.Get("item").Raw)
		case "response.completed", "response.incomplete":
			if whole := e.Get("response.output").Raw; whole != "["+strings.Join(items, ",")+"]" {
				t.Fatalf("streamed were %s, the answer is %s", items, whole)
			}
			return e.Get("response").Raw
		case "response.failed", "error":
			return `{"error":` + e.Get("response.error").Raw + `}`
		}
	}
	t.Fatal("the stream has no end")
	return ""
}
