package proxy_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// grow gives an agent a history of n results without asking anybody.
func (a *agent) grow(from, n int) {
	if from == 0 {
		a.user("Read all parts in order. Never change a file.")
	}
	for i := from; i < from+n; i++ {
		c := thread.ToolCall{ID: fmt.Sprintf("call_%04d", i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, i)}
		a.calls(c)
		a.results([]thread.ToolCall{c}, func(thread.ToolCall) string { return a.result(i) })
	}
}

// calls is an answer of the model's that calls a tool.
func (a *agent) calls(c thread.ToolCall) {
	switch a.api {
	case wire.Anthropic:
		a.history = append(a.history, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":%q,"input":%s}]}`, c.ID, c.Name, c.Arguments))
	case wire.Chat:
		a.history = append(a.history, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, c.ID, c.Name, c.Arguments))
	case wire.Responses:
		a.history = append(a.history, fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%q}`, c.ID, c.Name, c.Arguments))
	default:
		a.history = append(a.history, fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"name":%q,"args":%s},"thoughtSignature":"c2lnbmVk"}]}`, c.Name, c.Arguments))
	}
}

// TestOverflow: a provider that refuses the request as too long is asked once
// more with a smaller one, whatever form the refusal has; the client sees the
// second answer alone.
func TestOverflow(t *testing.T) {
	type refusal struct {
		name string
		apis []string
		a    proxytest.Answer
	}
	anthropicError := `{"type":"error","error":{"type":"%s","message":"%s"}}`
	for _, r := range []refusal{
		{"its own check", half(t), proxytest.Answer{}},
		{"413", half(t), proxytest.Answer{Status: 413, Body: fmt.Sprintf(anthropicError, "request_too_large", "Request exceeds the maximum size")}},
		{"413 of a gateway", half(t), proxytest.Answer{Status: 413, Body: "<html>413 Request Entity Too Large</html>"}},
		{"as a rate limit", []string{wire.Chat}, proxytest.Answer{Status: 429, Body: `{"error":{"message":"Request too large for gpt: input tokens exceed the context window of this model","type":"tokens","code":"context_length_exceeded"}}`}},
		{"as a server error", []string{wire.Chat}, proxytest.Answer{Status: 500, Body: `{"error":{"message":"the request exceeds the available context size","type":"server_error"}}`}},
		{"as an answer", []string{wire.Chat}, proxytest.Answer{Status: 200, Body: `{"error":{"message":"This endpoint's maximum context length is 60000 tokens.","code":400}}`}},
		{"in a stream", []string{wire.Responses}, proxytest.Answer{Stream: "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_x\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n" +
			"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_x\",\"status\":\"failed\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"},\"output\":[]}}\n\n"}},
		{"in a stream", []string{wire.Anthropic}, proxytest.Answer{Stream: "event: error\ndata: " + fmt.Sprintf(anthropicError, "invalid_request_error", "prompt is too long: 70000 tokens > 60000 maximum") + "\n\n"}},
		{"in a stream", []string{wire.Chat}, proxytest.Answer{Stream: "data: {\"error\":{\"message\":\"This model's maximum context length is 60000 tokens.\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}\n\n"}},
	} {
		for _, api := range r.apis {
			t.Run(r.name+", "+api, func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				if r.a.Status != 0 || r.a.Stream != "" {
					up.Window = 0
					up.Model = func(q *proxytest.Request) proxytest.Answer {
						if q.N == 1 {
							return r.a
						}
						return proxytest.Answer{Text: "well"}
					}
				}
				url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}}) // no window is known
				a := newAgent(t, api, url, r.a.Stream != "")
				a.grow(0, 35)
				s := a.peek()
				if s.status != 200 || s.text != "ok" && s.text != "well" {
					t.Fatalf("status %d: %.300s", s.status, s.raw)
				}
				if got := s.header.Get(proxy.ActionHeader); got != proxy.Recovered {
					t.Errorf("the answer says it was %q", got)
				}
				requests := up.Requests()
				if len(requests) != 2 || len(requests[1].Body) >= len(requests[0].Body)*3/4 {
					t.Errorf("%d requests, the last of %d bytes", len(requests), len(requests[len(requests)-1].Body))
				}
				if totals := p.Totals(); totals.Recovered != 1 || totals.Faults != 0 {
					t.Errorf("totals: %+v", totals)
				}
				// The window was named, or the plan is there: no second refusal.
				a.grow(35, 1)
				if s := a.ask(); s.status != 200 || len(up.Requests()) != 3 {
					t.Errorf("the next step: status %d, %d requests: %.300s", s.status, len(up.Requests()), s.raw)
				}
			})
		}
	}
}

// TestRefusalsPass: what else a provider says passes as it is, with no second
// try of ours.
func TestRefusalsPass(t *testing.T) {
	for name, a := range map[string]proxytest.Answer{
		"rate limit": {Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`},
		"overloaded": {Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"server":     {Status: 500, Body: `{"type":"error","error":{"type":"api_error","message":"oops"}}`},
		"key":        {Status: 401, Body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`},
		"invalid":    {Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: required"}}`},
		"empty":      {Status: 400},
	} {
		t.Run(name, func(t *testing.T) {
			up := proxytest.New(t)
			up.Model = func(*proxytest.Request) proxytest.Answer { return a }
			url, _ := start(t, up, proxy.Options{Window: 1_000_000, Config: palimpsest.Config{Counter: counter()}})
			agent := newAgent(t, wire.Anthropic, url, false)
			agent.header.Set(proxy.ThreadHeader, "refused")
			agent.grow(0, 3)
			s, err := agent.try()
			if err != nil {
				t.Fatal(err)
			}
			if s.status != a.Status || string(s.raw) != a.Body || len(up.Requests()) != 1 {
				t.Errorf("status %d, %q after %d requests", s.status, s.raw, len(up.Requests()))
			}
		})
	}
}

// TestNoRoom: where nothing can be made smaller the client gets the refusal.
func TestNoRoom(t *testing.T) {
	up := strict(t)
	up.Window = 1000
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.user(strings.Repeat("All of this is my task and must stay. ", 2000))
	s, err := a.try()
	if err != nil {
		t.Fatal(err)
	}
	if s.status != 400 || !strings.Contains(string(s.raw), "prompt is too long") {
		t.Errorf("status %d: %s", s.status, s.raw)
	}
}

// TestServerSideHistory: a history that the provider holds passes; when it does
// not fit any more, the client is told to send it.
func TestServerSideHistory(t *testing.T) {
	up := proxytest.New(t)
	full := false
	up.Model = func(*proxytest.Request) proxytest.Answer {
		if full {
			return proxytest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`}
		}
		return proxytest.Answer{Text: "ok"}
	}
	url, _ := start(t, up, smallWindow())
	long := strings.Repeat("read this too; ", 2000)
	thread := []byte(`{"model":"m","max_tokens":10,"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":"` + long + `"}]}`)
	previous := []byte(`{"model":"m","previous_response_id":"resp_1","input":"` + long + `"}`)
	for _, c := range []struct {
		path   string
		body   []byte
		status int
		says   string
	}{{"/v1/messages", thread, 404, `"error_code":"thread_not_found"`}, {"/v1/responses", previous, 400, `"code":"previous_response_not_found"`}} {
		full = false
		res := post(t, url+c.path, c.body, nil)
		got := up.Requests()
		if res.StatusCode != 200 || res.Header.Get(proxy.ReasonHeader) != "server-side-history" || string(got[len(got)-1].Body) != string(c.body) {
			t.Errorf("%s: status %d, %q", c.path, res.StatusCode, res.Header.Get(proxy.ReasonHeader))
		}
		full = true
		res = post(t, url+c.path, c.body, nil)
		said, _ := io.ReadAll(res.Body)
		if res.StatusCode != c.status || !strings.Contains(string(said), c.says) {
			t.Errorf("%s: status %d: %s", c.path, res.StatusCode, said)
		}
	}
}
