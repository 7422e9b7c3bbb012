//go:build unix

package hostile_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/hostile"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// provider answers as it is told, else in an ordinary way.
type provider struct {
	*httptest.Server

	mu       sync.Mutex
	next     *hostile.Case // the answer to the next request
	kind     string        // its Content-Type
	requests int
}

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	p.mu.Lock()
	next, kind := p.next, p.kind
	p.next = nil
	p.requests++
	p.mu.Unlock()
	api := wire.Chat
	switch {
	case strings.Contains(r.URL.Path, "/messages"):
		api = wire.Anthropic
	case strings.Contains(r.URL.Path, "/responses"):
		api = wire.Responses
	case strings.Contains(r.URL.Path, "enerateContent"):
		api = wire.Gemini
	}
	if next == nil {
		answer := ordinaryAnswer(api, "read_file")
		kind = "application/json"
		if strings.Contains(r.URL.Path, "stream") || bytes.Contains(body, []byte(`"stream":true`)) {
			kind, answer = "text/event-stream", strings.Join(wiretest.Events(api, answer, nil), "")
		}
		next = &hostile.Case{Data: []byte(answer)}
	}
	w.Header().Set("Content-Type", kind)
	if next.Encoding != "" {
		w.Header().Set("Content-Encoding", next.Encoding)
	}
	w.Write(next.Data)
}

// say sets the answer to the next request.
func (p *provider) say(c *hostile.Case, kind string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next, p.kind, p.requests = c, kind, 0
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// ordinaryAnswer is an answer with words, reasoning and a call of a tool.
func ordinaryAnswer(api, tool string) string {
	return wiretest.Body(api, &wiretest.ModelAnswer{
		Serial: "1", Model: "m", Reasoning: "The parser comes first.", Seal: "c2VhbA==", Text: "I look at the handlers, and at what calls them.", Stop: wire.StopTool,
		Calls: []thread.ToolCall{{ID: "c99", Name: tool, Arguments: `{"query":"handlers that parse a line","id":"1"}`}}, Usage: wire.Usage{Input: 900, Output: 40, Known: true},
	})
}

// pathOf is where requests of an API go.
func pathOf(api string, stream bool) string {
	switch api {
	case wire.Anthropic:
		return "/v1/messages"
	case wire.Chat:
		return "/v1/chat/completions"
	case wire.Responses:
		return "/v1/responses"
	}
	if stream {
		return "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/gemini-2.5-pro:generateContent"
}

// conversation is an ordinary request of an agent that has read files of so many bytes
// each: more than the window of these tests takes.
func conversation(api string, stream bool, file int) []byte {
	var items []string
	for n := range 12 {
		id, text := fmt.Sprint("c", n), rawjson.Quote(prose(file+n)) // one is the longest
		switch api {
		case wire.Anthropic:
			items = append(items, `{"role":"assistant","content":[{"type":"text","text":"I read a file."},{"type":"tool_use","id":"`+id+`","name":"read_file","input":{"path":"a.go"}}]}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":`+text+`}]}`)
		case wire.Chat:
			items = append(items, `{"role":"assistant","content":"I read a file.","tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a.go\"}"}}]}`,
				`{"role":"tool","tool_call_id":"`+id+`","content":`+text+`}`)
		case wire.Responses:
			items = append(items, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I read a file."}]}`,
				`{"type":"function_call","call_id":"`+id+`","name":"read_file","arguments":"{\"path\":\"a.go\"}"}`, `{"type":"function_call_output","call_id":"`+id+`","output":`+text+`}`)
		default:
			items = append(items, `{"role":"model","parts":[{"text":"I read a file."},{"functionCall":{"name":"read_file","args":{"path":"a.go"}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"name":"read_file","response":{"output":`+text+`}}}]}`)
		}
	}
	all, streams := strings.Join(items, ","), fmt.Sprintf(`"stream":%t,`, stream)
	switch api {
	case wire.Anthropic:
		return []byte(`{"model":"claude-x","max_tokens":1000,` + streams + `"system":"You repair builds.","tools":[{"name":"read_file","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Read all files."},` + all + `]}`)
	case wire.Chat:
		return []byte(`{"model":"m",` + streams + `"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object"}}}],"messages":[{"role":"system","content":"You repair builds."},{"role":"user","content":"Read all files."},` + all + `]}`)
	case wire.Responses:
		return []byte(`{"model":"m",` + streams + `"store":false,"instructions":"You repair builds.","tools":[{"type":"function","name":"read_file","parameters":{"type":"object"}}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Read all files."}]},` + all + `]}`)
	}
	return []byte(`{"systemInstruction":{"parts":[{"text":"You repair builds."}]},"tools":[{"functionDeclarations":[{"name":"read_file","parameters":{"type":"object"}}]}],"contents":[{"role":"user","parts":[{"text":"Read all files."}]},` + all + `]}`)
}

// apis are those that the proxy knows; one that has no ordinary request fails the test.
var apis = []string{wire.Anthropic, wire.Chat, wire.Responses, wire.Gemini}

// proxied is a daemon in front of a provider.
func proxied(t *testing.T, args ...string) (*served, *provider) {
	up := newProvider(t)
	return serve(t, append(args, "--anthropic-upstream", up.URL, "--openai-upstream", up.URL+"/v1", "--gemini-upstream", up.URL)...), up
}

// alive asks in an ordinary way.
func (s *served) alive(t *testing.T, api string) {
	t.Helper()
	status, answer := s.send(t, request{"POST", pathOf(api, false), nil, conversation(api, false, 7000)})
	if status != 200 || string(answer) != ordinaryAnswer(api, "read_file") {
		t.Errorf("an ordinary one: %d %.300s", status, answer)
	}
}

// TestRequests: whatever an agent sends, it is passed on or refused, and the proxy goes
// on.
func TestRequests(t *testing.T) {
	s, up := proxied(t)
	n, share := size()
	for i, api := range apis {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				sample := conversation(api, stream, 7000)
				kind, answer := "application/json", hostile.Case{Data: []byte(ordinaryAnswer(api, "read_file"))}
				if stream {
					kind, answer.Data = "text/event-stream", []byte(strings.Join(wiretest.Events(api, string(answer.Data), nil), ""))
				}
				limit, w := s.measured(t, api, conversation(api, stream, 7000+n/12)), &worst{}
				for c := range inTurn(slices.Values(some(hostile.Whole(n), i, share)), slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, 2*i, share), slices.Values(some(hostile.Packed(sample, n/8), i, share))) {
					up.say(&answer, kind)
					q := request{"POST", pathOf(api, stream), nil, c.Data}
					if c.Encoding != "" {
						q.header = map[string]string{"Content-Encoding": c.Encoding}
					}
					status, said := s.send(t, q)
					f := s.do(t, order{}).figures
					w.see(c.Name, f)
					size := len(c.Data)
					if c.Encoding != "" {
						size += 8 << 20 // unpacked it may be larger
					}
					limit.holds(t, size, f)
					if status == 0 || status >= 500 || status == 200 && (up.asked() == 0 || len(said) == 0) {
						t.Errorf("%d %.300s; the provider was asked %d times", status, said, up.asked())
					}
					if t.Failed() {
						t.Fatalf("the last case: %s", c.Name)
					}
				}
				up.say(nil, "")
				s.alive(t, api)
				w.tell(t, limit)
			})
		}
	}
}

// measured is what an ordinary request of some size takes.
func (s *served) measured(t *testing.T, api string, body []byte) ceiling {
	t.Helper()
	s.alive(t, api)
	s.do(t, order{})
	if status, answer := s.send(t, request{"POST", pathOf(api, false), nil, body}); status != 200 {
		t.Fatalf("an ordinary one: %d %.300s", status, answer)
	}
	f := s.do(t, order{}).figures
	return ceiling{len(body), f.CPU, f.Peak}
}

// TestAnswers: whatever a provider answers, the agent gets an answer or the end of its
// connection, and the proxy goes on.
func TestAnswers(t *testing.T) {
	s, up := proxied(t)
	n, share := size()
	for i, api := range apis {
		for _, stream := range []bool{false, true} {
			for k, tool := range []string{"read_file", "recall"} { // the second is answered in the proxy
				if !corpus.Long() && stream != (tool == "recall") {
					continue
				}
				t.Run(fmt.Sprintf("%s, stream %t, %s", api, stream, tool), func(t *testing.T) {
					sample, kind := []byte(ordinaryAnswer(api, tool)), "application/json"
					cases := inTurn(slices.Values(some(hostile.Whole(n), i, share)), slices.Values(hostile.Broken(sample, n)), hostile.Changed(sample, n, i+k, max(1, share/4)), slices.Values(some(hostile.Packed(sample, n/8), i, share)))
					if stream {
						kind = "text/event-stream"
						cases = inTurn(events(wiretest.Events(api, string(sample), nil), n, i+k, max(1, share/4)), slices.Values(some(hostile.Whole(n), i, share)), slices.Values(some(hostile.Packed(sample, n/8), i, share)))
					}
					limit, w := s.measured(t, api, conversation(api, stream, 7000+n/12)), &worst{}
					for c := range cases {
						up.say(&c, kind)
						status, said := s.send(t, request{"POST", pathOf(api, stream), nil, conversation(api, stream, 7000)})
						f := s.do(t, order{}).figures
						w.see(c.Name, f)
						size := len(c.Data)
						if c.Encoding != "" {
							size += 8 << 20
						}
						limit.holds(t, size, f)
						if status >= 500 && status != http.StatusBadGateway {
							t.Errorf("%d %.300s", status, said)
						}
						up.say(nil, "")
						if t.Failed() {
							t.Fatalf("the last case: %s", c.Name)
						}
					}
					s.alive(t, api)
					w.tell(t, limit)
				})
			}
		}
	}
}

// events are a stream with one of its events changed, cut off or many times over, and
// streams that never come to an end of an event or of a line.
func events(stream []string, n, first, share int) func(func(hostile.Case) bool) {
	return func(yield func(hostile.Case) bool) {
		all := strings.Join(stream, "")
		for i, event := range stream {
			head, data, ok := strings.Cut(event, "data: ")
			if !ok || !rawjson.Valid(strings.TrimSpace(data)) {
				continue
			}
			for c := range hostile.Changed([]byte(strings.TrimSpace(data)), n, first+i, share*len(stream)) {
				c.Data = []byte(strings.Join(stream[:i], "") + head + "data: " + string(c.Data) + "\n\n" + strings.Join(stream[i+1:], ""))
				if c.Name = fmt.Sprintf("event %d%s", i, c.Name); !yield(c) {
					return
				}
			}
			if (i+first)%max(1, share/4) == 0 && !yield(hostile.Case{Name: fmt.Sprintf("event %d many times", i), Data: []byte(strings.Join(stream[:i], "") + strings.Repeat(event, n/len(event)) + strings.Join(stream[i:], ""))}) {
				return
			}
		}
		for _, c := range []hostile.Case{
			{Name: "half a stream", Data: []byte(all[:len(all)/2])}, {Name: "a stream twice", Data: []byte(all + all)},
			{Name: "a line without an end", Data: []byte(all[:len(all)/2] + "data: " + strings.Repeat("x", n))},
			{Name: "an event without an end", Data: []byte(all[:len(all)/2] + strings.Repeat("data: x\n", n/8))},
			{Name: "lines of nothing", Data: []byte(strings.Repeat("\n", n) + all)}, {Name: "comments", Data: []byte(strings.Repeat(": x\n", n/4) + all)},
			{Name: "events of nothing", Data: []byte(strings.Repeat("data:\n\n", n/7) + all)}, {Name: "names of events", Data: []byte(strings.Repeat("event: x\n", n/9) + all)},
			{Name: "line ends of Macs", Data: []byte(strings.ReplaceAll(all, "\n", "\r"))}, {Name: "an event of brackets", Data: []byte("data: " + strings.Repeat("[", n) + "\n\n" + all)},
			{Name: "bytes that are no UTF-8", Data: []byte(strings.ReplaceAll(all, "e", "\xff"))}, {Name: "zero bytes", Data: []byte(strings.ReplaceAll(all, " ", "\x00"))},
		} {
			if !yield(c) {
				return
			}
		}
	}
}
