package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const threadsBeta = "message-threads-2026-08-12"

// threaded is an agent that runs over a message thread, as the official SDKs do: it sends only what is
// new, system and tools with the first request, and if the thread is refused the whole history in
// a new one.
type threaded struct{ *heldClient }

func newThreaded(t testing.TB, url string, stream bool) *threaded {
	a := newAgent(t, wire.Anthropic, url, stream)
	a.header = http.Header{"Anthropic-Beta": {"another-beta", threadsBeta}}
	return &threaded{newHeldClient(a)}
}

// told is an answer, read whole.
func told(t testing.TB, res *http.Response) said {
	t.Helper()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return said{status: res.StatusCode, header: res.Header, raw: raw}
}

// request is the body of the next request.
func (c *threaded) request() []byte {
	body := c.agent.body()
	set := func(path, raw string) { body, _ = sjson.SetRawBytes(body, path, []byte(raw)) }
	if c.previous == "" {
		set("thread", `{"type":"create"}`)
		return body
	}
	set("thread", fmt.Sprintf(`{"type":"continue","previous_message_id":%q}`, c.previous))
	for _, name := range []string{"system", "tools"} {
		body, _ = sjson.DeleteBytes(body, name)
	}
	return body
}

func (c *threaded) send() said {
	c.t.Helper()
	res := post(c.t, c.url+c.path(), c.request(), c.header)
	s := told(c.t, res)
	if s.status == http.StatusOK {
		c.understand(&s)
	}
	return s
}

func (c *threaded) ask() said {
	c.t.Helper()
	s := c.send()
	code := gjson.GetBytes(s.raw, "error.details.error_code").Str
	if c.previous != "" && (code == "thread_not_found" || code == "thread_already_continued") {
		c.replays++
		c.previous, c.history = "", append(c.whole, c.history...)
		c.whole = nil
		s = c.send()
	}
	c.actions[s.header.Get(proxy.ActionHeader)]++
	if s.status == http.StatusOK {
		c.whole = append(append(c.whole, c.history...), s.element)
		c.history, c.previous = nil, s.whole.Get("id").Str
	}
	return s
}

func (c *threaded) run() { c.toEnd(c.ask) }

// TestThread: the beta of threads is named with the requests that the provider continues a thread for, and
// with no other.
func TestThread(t *testing.T) {
	up := heldUpstream(t, 40)
	url, _ := start(t, up, smallWindow())
	c := newThreaded(t, url, false)
	c.user("Read all parts.")
	c.run()
	refusals(t, up)
	for _, q := range up.Requests() {
		want := "another-beta"
		if gjson.GetBytes(q.Body, "thread").Exists() {
			want += "," + threadsBeta
		}
		if beta := strings.Join(q.Header.Values("Anthropic-Beta"), ","); beta != want {
			t.Errorf("request %d: betas %q, want %q", q.N, beta, want)
		}
	}
}

// TestThreadUsage: the client is told what the provider counted of what was really sent.
func TestThreadUsage(t *testing.T) {
	up := heldUpstream(t, 30)
	url, _ := start(t, up, proxy.Options{NoTools: true, Window: window, Config: palimpsest.Config{Counter: counter()}})
	c := newThreaded(t, url, true)
	c.user("Read all parts.")
	for range 30 {
		s := c.ask()
		if s.status != 200 {
			t.Fatalf("%d %.300s", s.status, s.raw)
		}
		sent := up.Requests()
		if last := sent[len(sent)-1]; s.input != int64(last.Tokens)+1 {
			t.Fatalf("the client was told of %d tokens, sent were %d", s.input, last.Tokens)
		}
		if len(s.calls) == 0 {
			return
		}
		c.results(s.calls, partOf)
	}
}

// TestThreadUnknown: a thread that nobody here has seen passes untouched; where it has grown
// too long, the client is told on which it sends its history in a new thread, and
// that is held here.
func TestThreadUnknown(t *testing.T) {
	up := plainUpstream(t)
	url, _ := start(t, up, smallWindow())
	c := newThreaded(t, up.URL, false)
	c.user(strings.Repeat(result(1), 8))
	c.ask()
	c.url = url
	c.user("Go on.")
	want := string(c.request())
	c.ask()
	sent := up.Requests()
	if got := string(sent[len(sent)-1].Body); got != want {
		t.Errorf("the upstream got %s, want %s", got, want)
	}
	for n := range 12 {
		c.user(strings.Repeat(result(n), 3))
		if s := c.ask(); s.status != 200 {
			t.Fatalf("%d: %.300s", s.status, s.raw)
		}
	}
	if c.replays != 1 || c.actions[proxy.Planned]+c.actions[proxy.Recovered]+c.actions[proxy.Compacted] == 0 {
		t.Errorf("%d replays, actions %v", c.replays, c.actions)
	}
}

// TestThreadCount: a request to count tokens names a thread of ours, and counts what
// would be sent: providers take no thread there.
func TestThreadCount(t *testing.T) {
	up := heldUpstream(t, 30)
	url, _ := start(t, up, proxy.Options{NoTools: true, Window: window, Config: palimpsest.Config{Counter: counter()}})
	c := newThreaded(t, url, false)
	c.user("Read all parts.")
	for n := range 30 {
		body, _ := sjson.DeleteBytes(c.request(), "stream")
		counted := told(t, post(t, url+"/v1/messages/count_tokens", body, c.header))
		sent := up.Requests()
		if last := sent[len(sent)-1]; last.Refused != "" || gjson.GetBytes(last.Body, "thread").Exists() || strings.Contains(strings.Join(last.Header.Values("Anthropic-Beta"), ","), threadsBeta) {
			t.Fatalf("step %d: counted was %.300s %v", n, last.Body, last.Header)
		}
		s := c.ask()
		sent = up.Requests()
		if last := sent[len(sent)-1]; s.header.Get(proxy.ActionHeader) != proxy.Compacted && gjson.GetBytes(counted.raw, "input_tokens").Int() != int64(last.Tokens) {
			t.Errorf("step %d: %s, sent were %d tokens", n, counted.raw, last.Tokens)
		}
		if len(s.calls) == 0 {
			return
		}
		c.results(s.calls, partOf)
	}
}

// TestThreadPaused: nothing new goes on with an answer that the provider has paused.
func TestThreadPaused(t *testing.T) {
	up := plainUpstream(t)
	holdNothing(up)
	url, _ := start(t, up, smallWindow())
	paused := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}],"stop_reason":"pause_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if strings.Contains(string(q.Body), "server_tool_use") {
			return proxytest.Answer{Text: "found"}
		}
		return proxytest.Answer{Body: paused}
	}
	send := func(messages, thread string) said {
		return told(t, post(t, url+"/v1/messages", []byte(`{"model":"test-model","max_tokens":9,"thread":`+thread+`,"messages":[`+messages+`]}`), http.Header{"Anthropic-Beta": {threadsBeta}}))
	}
	if s := send(`{"role":"user","content":"Look it up."}`, `{"type":"create"}`); s.status != 200 {
		t.Fatalf("%d %s", s.status, s.raw)
	}
	s := send("", `{"type":"continue","previous_message_id":"msg_1"}`)
	sent := up.Requests()
	if got := gjson.GetBytes(sent[len(sent)-1].Body, "messages.#.role").Raw; s.status != 200 || got != `["user","assistant"]` || gjson.GetBytes(s.raw, "content.0.text").Str != "found" {
		t.Errorf("%d %s, the upstream got %s", s.status, s.raw, got)
	}
}
