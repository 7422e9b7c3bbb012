package proxy

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// sourceBody is a request of about so many bytes whose tool results are source code. Behind
// its messages stand the members of tail.
func sourceBody(tb testing.TB, api string, size int, tail string) string {
	source, err := os.ReadFile("history.go")
	if err != nil {
		tb.Fatal(err)
	}
	call, result, list := `{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read","input":{"path":"a.go"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%s}]}`, "messages"
	if api == wire.Responses {
		call, result, list = `{"type":"function_call","call_id":"t%d","name":"read","arguments":"{}"}`, `{"type":"function_call_output","call_id":"t%d","output":%s}`, "input"
	}
	var b strings.Builder
	b.WriteString(`{"model":"m","max_tokens":100,"` + list + `":[{"role":"user","content":"Read all."}`)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, ","+call+","+result, n, n, rawjson.Quote(string(source)))
	}
	return b.String() + "]" + tail + "}"
}

func newReceived(tb testing.TB, api string) (*Transport, *received) {
	t, err := NewTransport(nil)
	if err != nil {
		tb.Fatal(err)
	}
	path := map[string]string{wire.Anthropic: "/v1/messages", wire.Responses: "/v1/responses"}[api]
	r, err := http.NewRequest(http.MethodPost, "https://example.invalid"+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return t, &received{request: r, endpoint: endpointOf(path)}
}

// readStep has a step read, so that the next one is known to go on with it.
func readStep(tb testing.TB, t *Transport, x received, body string) historyReader {
	x.plain = t.requests.Similar(x.endpoint.dialect.API(), body)
	reader := t.histories.reader(&x)
	if _, _, err := t.conversations.parseRequest(tb.Context(), &x); err != nil {
		tb.Fatal(err)
	}
	return reader
}

// TestHistoryReaderOfNextStep: what a step brings is found wherever it stands, and what was
// there before is found again.
func TestHistoryReaderOfNextStep(t *testing.T) {
	for _, c := range []struct{ name, api, item, tail, want string }{
		{"nothing", wire.Anthropic, `{"role":"user","content":"go on"}`, ``, "<nil>"},
		{"a thread behind the messages", wire.Anthropic, `{"role":"user","content":"go on"}`, `,"thread":{"type":"create"}`, "proxy.messagesReader"},
		{"a thread in a message", wire.Anthropic, `{"role":"user","content":[{"type":"text","text":"\"thread\"","thread":{}}]}`, ``, "<nil>"},
		{"a compaction of ours", wire.Anthropic, `{"role":"user","content":"` + native.Prefix + `"}`, ``, "proxy.messagesReader"},
		{"nothing", wire.Responses, `{"role":"user","content":"go on"}`, ``, "<nil>"},
		{"a conversation", wire.Responses, `{"role":"user","content":"go on"}`, `,"conversation":"conv_1"`, "proxy.responsesReader"},
		{"a response", wire.Responses, `{"role":"user","content":"go on"}`, `,"previous_response_id":"resp_1"`, "proxy.responsesReader"},
		{"a compaction of ours", wire.Responses, `{"type":"compaction","encrypted_content":"` + native.Prefix + `"}`, ``, "proxy.responsesReader"},
	} {
		tr, x := newReceived(t, c.api)
		const tools = `,"tools":[{"type":"function","name":"read","input_schema":{"type":"object"},"parameters":{"type":"object"}}]`
		before := sourceBody(t, c.api, 40<<10, "")
		first := before[:len(before)-2]
		if e := readStep(t, tr, *x, first+"]"+tools+"}"); e != nil {
			t.Fatalf("%T of a plain request", e)
		}
		step := func(items string) string { return first + items + "]" + tools + c.tail + "}" }
		for n, body := range []string{step("," + c.item), step("," + c.item + `,{"role":"user","content":"and on"}`)} {
			if e := readStep(t, tr, *x, body); fmt.Sprintf("%T", e) != c.want {
				t.Errorf("%s, %s, step %d: %T, want %s", c.api, c.name, n, e, c.want)
			}
		}
	}
}

// BenchmarkHistoryReader is what it takes to see that a request holds its history: for one that
// was never seen, and for the next step of one that was.
func BenchmarkHistoryReader(b *testing.B) {
	for _, api := range []string{wire.Anthropic, wire.Responses} {
		body := sourceBody(b, api, 4<<20, "")
		next := body[:len(body)-2] + `,{"role":"user","content":"go on"}]}`
		for _, known := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/known=%v", api, known), func(b *testing.B) {
				t, x := newReceived(b, api)
				if known {
					readStep(b, t, *x, body)
				}
				for b.Loop() {
					x.plain = t.requests.Similar(api, next)
					t.histories.reader(x)
				}
			})
		}
	}
}

// TestWatchResponse: a stream passes byte for byte while its response is remembered.
func TestWatchResponse(t *testing.T) {
	from, err := os.ReadFile("../emulate/testdata/answer.sse")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{string(from): 1, strings.ReplaceAll(string(from), "response.completed", "response.failed"): 0, "data: {\"type\":\"response.completed\"}\n\nrest": 1} {
		res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(text))}
		var kept []providerAnswer
		watchResponse(res, func(err error) { t.Error(err) }, func(a providerAnswer) { kept = append(kept, a) })
		if out, err := io.ReadAll(res.Body); err != nil || string(out) != text {
			t.Errorf("%v, %q became %q", err, text, out)
		}
		if len(kept) != want {
			t.Errorf("%q: %v", text, kept)
		}
	}
}

// TestStreamedOutput: what a response said is known, whether its end repeats the items or not, or only one that was
// put before them.
func TestStreamedOutput(t *testing.T) {
	const one, two = `{"type":"compaction","id":"cmp_1"}`, `{"type":"message","id":"msg_1"}`
	for _, repeated := range []string{one + "," + two, "", one} {
		var o streamedOutput
		for _, item := range []string{one, two} {
			if _, _, ended := o.read(`{"type":"response.output_item.done","item":` + item + `}`); ended {
				t.Error("an item ends the response")
			}
		}
		response, output, ended := o.read(`{"type":"response.completed","response":{"id":"resp_1","output":[` + repeated + `]}}`)
		if !ended || response.Get("id").Str != "resp_1" || !slices.Equal(output, []string{one, two}) {
			t.Errorf("after an end with %q: %q, %t", repeated, output, ended)
		}
	}
}
