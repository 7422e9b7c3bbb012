package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// socketed is an agent on a WebSocket, as Codex is: the provider keeps nothing, and what is new
// goes out alone.
type socketed struct {
	*agent
	conn     *websocket.Conn
	previous string
}

func newSocketed(t testing.TB, url string) *socketed {
	t.Helper()
	c, res, err := websocket.Dial(context.Background(), strings.Replace(url, "http", "ws", 1)+"/v1/responses",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer k"}, "Openai-Beta": {"responses_websockets=2026-02-06"}, "Session_id": {"one"}}})
	if err != nil {
		t.Fatalf("%v %v", err, res)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { c.CloseNow() })
	return &socketed{agent: newAgent(t, wire.Responses, url, true), conn: c}
}

// send sends a request with further members, and reads events up to one that ends the answer.
func (c *socketed) send(members ...string) (events []gjson.Result) {
	c.t.Helper()
	body := `{"type":"response.create",` + strings.TrimPrefix(string(c.body()), "{")
	for _, m := range members {
		name, value, _ := strings.Cut(m, "=")
		body, _ = sjson.SetRaw(body, name, value)
	}
	return c.exchange(body)
}

func (c *socketed) exchange(body string) (events []gjson.Result) {
	c.t.Helper()
	if err := c.conn.Write(context.Background(), websocket.MessageText, []byte(body)); err != nil {
		c.t.Fatal(err)
	}
	for {
		_, text, err := c.conn.Read(context.Background())
		if err != nil {
			c.t.Fatal(err)
		}
		e := gjson.ParseBytes(text)
		switch events = append(events, e); e.Get("type").Str {
		case "response.completed", "response.failed", "response.incomplete", "error":
			return events
		}
	}
}

// ask sends what is new, and takes the answer.
func (c *socketed) ask(members ...string) (calls []thread.ToolCall) {
	c.t.Helper()
	if c.previous != "" {
		members = append(members, "previous_response_id="+fmt.Sprintf("%q", c.previous))
	}
	events := c.send(members...)
	last := events[len(events)-1]
	if last.Get("type").Str != "response.completed" {
		c.t.Fatalf("%s", last.Raw)
	}
	c.previous, c.history = last.Get("response.id").Str, nil
	for _, item := range last.Get("response.output").Array() {
		if item.Get("type").Str == "function_call" {
			calls = append(calls, thread.ToolCall{ID: item.Get("call_id").Str, Name: item.Get("name").Str, Arguments: item.Get("arguments").Str})
		}
	}
	return calls
}

// TestSocketWithoutEnd: where the provider's stream ends without saying how the response ended, the
// connection closes. The client would wait for that.
func TestSocketWithoutEnd(t *testing.T) {
	const begun = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_x\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n"
	for end, whole := range map[string]bool{
		"": false,
		"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_x\",\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"oops\"},\"output\":[]}}\n\n": true,
		"event: error\ndata: {\"type\":\"error\",\"sequence_number\":1,\"code\":\"server_error\",\"message\":\"oops\",\"param\":null}\n\n":                                                                                       true,
	} {
		up := plainUpstream(t)
		up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Stream: begun + end} }
		url, _ := start(t, up, smallWindow())
		c := newSocketed(t, url)
		c.user("Read all parts.")
		for _, text := range []string{`{"type":"response.create",` + strings.TrimPrefix(string(c.body()), "{"), `{"type":"another"}`} {
			if err := c.conn.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil && whole {
				t.Fatal(err)
			}
		}
		answered := false // the second message
		for {
			_, text, err := c.conn.Read(t.Context())
			answered = answered || strings.Contains(string(text), "response.create\"")
			if err != nil || answered {
				break
			}
		}
		if answered != whole {
			t.Errorf("after %q the connection goes on: %t", end, answered)
		}
	}
}

// TestSocket: an agent on a WebSocket does a task far over the window, of which each of its
// messages holds what is new; the provider is asked over HTTP, with the whole.
func TestSocket(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(40, false)
	url, p := start(t, up, smallWindow())
	c := newSocketed(t, url)
	c.user("Read all parts.")
	c.ask("generate=false", `client_metadata={"x-codex-turn-metadata":"{}"}`) // as Codex warms its connection
	if n := len(up.Requests()); n != 0 {
		t.Fatalf("the provider was asked %d times for nothing", n)
	}
	for range 100 {
		calls := c.ask(`client_metadata={"x-codex-turn-metadata":"{\"request_kind\":\"turn\"}"}`)
		if len(calls) == 0 {
			break
		}
		c.results(calls, partOf)
	}
	refusals(t, up)
	if totals := p.Totals(); totals.Faults != 0 || totals.Compactions < 1 {
		t.Errorf("%+v", totals)
	}
	for _, q := range up.Requests() {
		if q.Method != http.MethodPost || q.Header.Get("Upgrade")+q.Header.Get("Sec-Websocket-Key")+q.Header.Get("Openai-Beta") != "" || q.Header.Get("Authorization") != "Bearer k" ||
			q.Header.Get("X-Codex-Turn-Metadata") != `{"request_kind":"turn"}` || !q.Stream {
			t.Fatalf("request %d: %v", q.N, q.Header)
		}
		if body := string(q.Body); !strings.Contains(body, "Read all parts.") || gjson.Get(body, "previous_response_id").Exists() || gjson.Get(body, "type").Exists() || gjson.Get(body, "generate").Exists() {
			t.Fatalf("request %d: %.500s", q.N, body)
		}
	}
	if last := up.Requests()[len(up.Requests())-1]; !strings.Contains(string(last.Body), "part_039.go") {
		t.Errorf("the last request: %.500s", last.Body)
	}
}

// TestSocketErrors: what goes wrong is told as the API tells it, and the connection goes on.
func TestSocketErrors(t *testing.T) {
	up := plainUpstream(t)
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if q.N == 1 {
			return proxytest.Answer{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: `{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}`}
		}
		return proxytest.Answer{Text: "ok"}
	}
	url, _ := start(t, up, smallWindow())
	c := newSocketed(t, url)
	c.user("Hello.")
	e := c.send()
	if last := e[len(e)-1]; last.Get("status").Int() != 429 || last.Get("error.code").Str != "rate_limit_exceeded" || last.Get("headers.retry-after").Str != "7" {
		t.Errorf("%s", last.Raw)
	}
	for name, text := range map[string]string{"no JSON": "{", "no object": "[]", "another type": `{"type":"session.update"}`, "no type": `{}`, "two triggers": `{"type":"response.create","input":[{"type":"compaction_trigger"},{"type":"compaction_trigger"}]}`} {
		if e := c.exchange(text); len(e) != 1 || e[0].Get("status").Int() != 400 || e[0].Get("error.message").Str == "" {
			t.Errorf("%s: %v", name, e)
		}
	}
	e = c.send(`previous_response_id="resp_of_old"`)
	if last := e[len(e)-1]; last.Get("error.code").Str != "previous_response_not_found" {
		t.Errorf("%s", last.Raw)
	}
	c.ask()
	if err := c.conn.Write(t.Context(), websocket.MessageBinary, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("after a binary message: %v", err)
	}
}

// TestSocketBounds: a message may be as large as a body, and a page of another origin opens
// no connection.
func TestSocketBounds(t *testing.T) {
	up := plainUpstream(t)
	url, _ := start(t, up, proxy.Options{MaxBody: 20_000})
	c := newSocketed(t, url)
	c.user(strings.Repeat("long ", 10_000))
	if err := c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create",`+strings.TrimPrefix(string(c.body()), "{"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("%v", err)
	}
	_, res, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"/v1/responses", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://evil.example"}}})
	if err == nil || res == nil || res.StatusCode != http.StatusForbidden {
		t.Errorf("another origin: %v %v", err, res)
	}
	if len(up.Requests()) != 0 {
		t.Error("the provider was asked")
	}
}

// TestSocketGone: for a client that goes away the provider works no longer.
func TestSocketGone(t *testing.T) {
	up := plainUpstream(t)
	hold := make(chan struct{})
	defer close(hold)
	up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "a long answer", Hold: hold} }
	url, _ := start(t, up, proxy.Options{})
	c := newSocketed(t, url)
	c.user("Hello.")
	if err := c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"type":"response.create",`+strings.TrimPrefix(string(c.body()), "{"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.conn.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.conn.CloseNow()
	<-up.Gone
}

// compacting is a model of a provider that compacts by itself.
func compacting(model func(*proxytest.Request) proxytest.Answer) func(*proxytest.Request) proxytest.Answer {
	return func(q *proxytest.Request) proxytest.Answer {
		if a, ok := proxytest.Compaction(q, "theirs"); ok {
			return a
		}
		return model(q)
	}
}

// TestSocketTrigger: a request that ends with a trigger is answered with one compaction, by the
// provider or in its place, whether something was removed before or not; and the trigger that the
// provider gets is the client's own.
func TestSocketTrigger(t *testing.T) {
	const trigger = `{"type":"compaction_trigger","note":"kept"}`
	for _, emulated := range []bool{false, true} {
		for _, parts := range []int{3, 40} {
			t.Run(fmt.Sprintf("emulated %t, %d parts", emulated, parts), func(t *testing.T) {
				t.Parallel()
				up, o := strict(t), smallWindow()
				if emulated {
					up, o.Emulate = plainUpstream(t), []string{"openai"}
				}
				up.Model = compacting(steps(parts, false))
				url, p := start(t, up, o)
				c := newSocketed(t, url)
				c.user("Read all parts.")
				for {
					calls := c.ask()
					if len(calls) == 0 {
						break
					}
					c.results(calls, partOf)
				}
				if n := p.Totals().Compactions; n > 0 != (parts > 3) {
					t.Fatalf("%d compactions", n)
				}
				before := len(up.Requests())
				c.history = []string{trigger}
				events := c.send(`previous_response_id=` + fmt.Sprintf("%q", c.previous))
				last := events[len(events)-1]
				output := last.Get("response.output").Array()
				if last.Get("type").Str != "response.completed" || len(output) != 1 || output[0].Get("type").Str != "compaction" {
					t.Fatalf("the answer to a trigger: %s", last.Raw)
				}
				asked := up.Requests()[before:]
				if emulated != (len(asked) == 0) || emulated == (output[0].Get("encrypted_content").Str == "theirs") {
					t.Errorf("the provider was asked %d times, and the answer is %s", len(asked), output[0].Raw)
				}
				for _, q := range asked {
					if got := gjson.GetBytes(q.Body, "input.@reverse.0").Raw; got != trigger {
						t.Errorf("the provider's request ends with %s", got)
					}
				}
				c.previous, c.history = "", []string{output[0].Raw}
				c.user("Go on.")
				c.ask()
				refusals(t, up)
				if p.Totals().Faults != 0 {
					t.Errorf("%+v", p.Totals())
				}
			})
		}
	}
}

// TestTriggerUnderPlan: over HTTP too, a trigger reaches the provider where the conversation was made
// smaller, and is no message of it.
func TestTriggerUnderPlan(t *testing.T) {
	up := strict(t)
	up.Model = compacting(steps(40, false))
	url, _ := start(t, up, smallWindow())
	a := newAgent(t, wire.Responses, url, true)
	a.user("Read all parts.")
	var thread string
	for {
		s := a.ask()
		if thread = s.thread(); len(s.calls) == 0 {
			break
		}
		a.results(s.calls, partOf)
	}
	before := len(up.Requests())
	items := a.triggered()
	if len(items) != 1 || items[0].Get("encrypted_content").Str != "theirs" {
		t.Fatalf("the answer to a trigger: %v", items)
	}
	q := up.Requests()[before]
	if got := gjson.GetBytes(q.Body, "input.@reverse.0.type").Str; got != "compaction_trigger" || len(q.Body) >= len(a.body()) {
		t.Errorf("the provider's request has %d of %d bytes and ends with %q", len(q.Body), len(a.body()), got)
	}
	a.user("Go on.")
	if s := a.ask(); s.thread() != thread {
		t.Errorf("the conversation goes on in %q, not in %q", s.thread(), thread)
	}
	refusals(t, up)
}
