package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// brackets is a text that a recursive reader of JSON follows to the end of its
// stack, which is smallStack in this test. Compressed it has some kilobytes.
var brackets = strings.Repeat("[", 1_500_000)

const smallStack = 8 << 20

// reading is a request of an agent that has read files, one of which, or the
// arguments of whose call, are a text.
func reading(api, arguments, result string) string {
	var b strings.Builder
	quoted := rawjson.Quote(result)
	b.WriteString(`{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Read all files."}`)
	for n := range 12 {
		args, text := `{"path":"a.go"}`, rawjson.Quote(strings.Repeat("some line of the file\n", 300))
		if n == 5 {
			args, text = arguments, quoted
		}
		if api == wire.Anthropic {
			fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"Read","input":%s}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%s}]}`,
				n, args, n, text)
			continue
		}
		fmt.Fprintf(&b, `,{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"Read","arguments":%s}}]},{"role":"tool","tool_call_id":"c%d","content":%s}`,
			n, rawjson.Quote(args), n, text)
	}
	b.WriteString(`],"tools":[`)
	if api == wire.Anthropic {
		b.WriteString(`{"name":"Read","input_schema":{"type":"object"}}]}`)
	} else {
		b.WriteString(`{"type":"function","function":{"name":"Read","parameters":{"type":"object"}}}]}`)
	}
	return b.String()
}

// TestNesting: text that nests without an end, in a request or in an answer, ends
// nothing: the proxy passes it on and goes on. It runs in a process of its own,
// because a stack that is full ends the process.
func TestNesting(t *testing.T) {
	if testing.Short() {
		t.Skip("megabytes of brackets")
	}
	answer := ""
	kind := "application/json"
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, answer)
	}))
	defer upstream.Close()
	chat, messages := paths[wire.Chat], paths[wire.Anthropic]
	const call = `{"path":"a.go"}`
	event := func(data string) string { return "data: " + data + "\n\n" }
	block := func(what string) string {
		return "event: message_start\n" + event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1}}}`) +
			"event: content_block_start\n" + event(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"read_artifact","input":{}}}`) +
			what + "event: content_block_stop\n" + event(`{"type":"content_block_stop","index":0}`) +
			"event: message_delta\n" + event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":1}}`) +
			"event: message_stop\n" + event(`{"type":"message_stop"}`)
	}
	long := reading(wire.Anthropic, call, strings.Repeat("x\n", 40_000))
	for _, c := range corpus.EveryNth([]struct{ name, path, body, kind, answer string }{
		{"result", chat, reading(wire.Chat, call, brackets), "", ""},
		{"result of objects", chat, reading(wire.Chat, call, strings.Repeat(`{"a":`, 250_000)), "", ""},
		{"closed result", chat, reading(wire.Chat, call, brackets[:len(brackets)/2]+strings.Repeat("]", len(brackets)/2)), "", ""},
		{"arguments", chat, reading(wire.Chat, brackets, "ok"), "", ""},
		{"arguments in an object", chat, reading(wire.Chat, `{"todos":"`+brackets+`"}`, "ok"), "", ""},
		{"result for Messages", messages, reading(wire.Anthropic, call, brackets), "", ""},
		{"input of Messages", messages, reading(wire.Anthropic, brackets, "ok"), "", ""},
		{"words and colons", chat, reading(wire.Chat, call, strings.Repeat("ab:", 250_000)), "", ""},
		{"body", chat, brackets, "", ""},
		{"answer", messages, long, "application/json", brackets},
		{"answer with a deep member", messages, long, "application/json", `{"type":"message","content":` + brackets},
		{"event", messages, long, "text/event-stream", event(strings.Repeat("[", 8_000_000))},
		{"event with deep usage", messages, long, "text/event-stream", event(`{"type":"message_start","message":{"usage":`+strings.Repeat(`{"a":`, 250_000)) + block("")},
		{"arguments in a stream", messages, long, "text/event-stream", block("event: content_block_delta\n" +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+brackets+`"}}`))},
		{"error", messages, long, "application/json", `{"type":"error","error":{"message":"x","more":` + brackets},
	}, 3) {
		t.Run(c.name, func(t *testing.T) {
			body := c.body
			if c.kind == "text/event-stream" {
				body = strings.TrimSuffix(body, "}") + `,"stream":true}`
			}
			p := startChild(t, served{Upstream: upstream.URL, Ours: true, Window: 20_000, Stack: smallStack})
			answer, kind = okAnswer, "application/json"
			if c.answer != "" {
				answer, kind = c.answer, c.kind
			}
			packed := packed(t, "gzip", []byte(body))
			res := post(t, p.url+c.path, packed, http.Header{"Content-Encoding": {"gzip"}, "Content-Type": {"application/json"}})
			got, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK || len(got) == 0 {
				t.Errorf("%d packed bytes: %s, %d bytes of an answer, %v", len(packed), res.Status, len(got), err)
			}
			answer, kind = okAnswer, "application/json"
			if res := post(t, p.url+messages, []byte(long), nil); res.StatusCode != http.StatusOK || res.Header.Get("X-Palimpsest-Action") == "" {
				t.Errorf("the request after it: %s %s", res.Status, res.Header.Get("X-Palimpsest-Action"))
			}
		})
	}
}
