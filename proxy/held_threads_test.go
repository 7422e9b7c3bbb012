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
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/wire"
)

const threadsBeta = "message-threads-2026-08-12"

// threaded is an agent that runs over a message thread, as the official SDKs do: what is
// new goes out alone, system and tools with the first request, and on a refusal of the
// thread's the whole history in a new one.
type threaded struct {
	*agent
	whole    []string // the history of the client's own
	previous string
	actions  map[string]int
	replays  int
}

func newThreaded(t testing.TB, url string, stream bool) *threaded {
	a := newAgent(t, wire.Anthropic, url, stream)
	a.header = http.Header{"Anthropic-Beta": {"another-beta", threadsBeta}}
	return &threaded{agent: a, actions: map[string]int{}}
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

// TestThread: a message thread passes as it is below the mark; above it the whole
// conversation is put together here, the provider gets an ordinary request that fits,
// and the client goes on with its thread, of which it never sends more than what is new.
func TestThread(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			up := plainUpstream(t)
			up.Model = steps(40, false)
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
			c := newThreaded(t, url, stream)
			c.user("Read all parts.")
			c.run()
			refusals(t, up)
			totals := p.Totals()
			if totals.Faults != 0 || totals.Compactions < 1 || c.actions[proxy.Passed] < 3 || c.actions[proxy.Planned] < 3 || c.replays != 0 {
				t.Errorf("totals %+v, actions %v, %d replays", totals, c.actions, c.replays)
			}
			passed, whole := 0, 0
			for _, q := range up.Requests() {
				beta := strings.Join(q.Header.Values("Anthropic-Beta"), ",")
				switch thread := gjson.GetBytes(q.Body, "thread"); {
				case thread.Exists() && strings.Contains(beta, threadsBeta):
					passed++
				case !thread.Exists() && beta == "another-beta":
					whole++
				default:
					t.Errorf("request %d: betas %q, thread %s", q.N, beta, thread.Raw)
				}
			}
			if passed < 3 || whole < 3 {
				t.Errorf("%d requests went on with the thread, %d held all", passed, whole)
			}
			last := up.Requests()[len(up.Requests())-1]
			if body := string(last.Body); !strings.Contains(body, "Read all parts.") || !strings.Contains(body, "part_039.go") ||
				!strings.Contains(body, "You are a careful agent.") || !strings.Contains(body, `"name":"read_file"`) {
				t.Errorf("the last request: %.500s", body)
			}
		})
	}
}

// TestThreadUsage: the client is told what the provider counted of what was really sent.
func TestThreadUsage(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(30, false)
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

// TestThreadRestart: a new proxy over the same store goes on with a thread whose
// beginning it has not seen.
func TestThreadRestart(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(40, false)
	again := restarts(t, up)
	c := newThreaded(t, again(), true)
	c.user("Read all parts.")
	for range 5 {
		c.results(c.ask().calls, partOf)
	}
	c.url = again()
	for range 12 {
		c.results(c.ask().calls, partOf)
	}
	c.url = again()
	c.run()
	refusals(t, up)
	if c.actions[proxy.Compacted] == 0 || c.replays != 0 {
		t.Errorf("actions %v, %d replays", c.actions, c.replays)
	}
}

// TestThreadElsewhere: a provider that knows no threads, or has forgotten one, gets the
// whole conversation, and the client goes on as if it held them.
func TestThreadElsewhere(t *testing.T) {
	for name, forgets := range map[string]func(*proxytest.Upstream){
		"holds nothing": func(up *proxytest.Upstream) {
			up.Chains = false
			up.Refuse = func(body []byte) string {
				if gjson.GetBytes(body, "thread").Exists() {
					return "thread: Extra inputs are not permitted"
				}
				return ""
			}
		},
		"has forgotten": func(*proxytest.Upstream) {},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %t", name, stream), func(t *testing.T) {
				t.Parallel()
				up := plainUpstream(t)
				up.Model = steps(24, false)
				forgets(up)
				url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
				c := newThreaded(t, url, stream)
				c.user("Read all parts.")
				c.results(c.ask().calls, partOf)
				c.results(c.ask().calls, partOf)
				up.ForgetResponses()
				c.run()
				refused := refusedBy(up)
				if refused != 1 || p.Totals().Faults != 0 || c.replays != 0 {
					t.Errorf("%d requests were refused, %+v, %d replays", refused, p.Totals(), c.replays)
				}
				sent := up.Requests()
				for _, q := range sent[5:] {
					// The client marks the end of each of its requests, and means that of the conversation.
					messages := gjson.GetBytes(q.Body, "messages").Array()
					if end := messages[len(messages)-1].Raw; !strings.Contains(end, "cache_control") {
						t.Errorf("request %d: no mark at the end: %.300s", q.N, end)
					}
				}
			})
		}
	}
}

// TestThreadUnknown: a thread that nobody here has seen passes untouched; where it has grown
// too long, the client is told on which it sends its history in a new thread, and
// that is held here.
func TestThreadUnknown(t *testing.T) {
	up := plainUpstream(t)
	url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
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

// TestThreadFork: two requests may go on with the same message, also where the
// provider lets only one do so.
func TestThreadFork(t *testing.T) {
	up := plainUpstream(t)
	up.Model = func(q *proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: fmt.Sprint("answer ", q.N)} }
	url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
	c := newThreaded(t, url, false)
	for n := range 4 {
		c.user(result(n))
		c.ask()
	}
	at, whole := c.previous, c.whole
	for _, way := range []string{"left", "right"} {
		c.previous, c.whole = at, whole
		for n := range 24 {
			c.user(way + " " + result(100+n))
			if s := c.ask(); s.status != 200 {
				t.Fatalf("%d: %.300s", s.status, s.raw)
			}
		}
		sent := up.Requests()
		other := map[string]string{"left": "right part_", "right": "left File"}[way]
		full, _ := sjson.Delete(string(sent[len(sent)-1].Body), "tools")
		if strings.Contains(full, other) || !strings.Contains(full, way+" File") {
			t.Errorf("%s: the last request is of the other way", way)
		}
	}
	if totals := p.Totals(); totals.Faults != 0 || totals.Compactions == 0 || c.replays != 0 {
		t.Errorf("%+v, %d replays", totals, c.replays)
	}
}

// TestThreadCount: a request to count tokens names a thread of ours, and counts what
// would be sent: providers take no thread there.
func TestThreadCount(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(30, false)
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
	up.Chains = false
	up.Refuse = func(body []byte) string {
		if gjson.GetBytes(body, "thread").Exists() {
			return "thread: Extra inputs are not permitted"
		}
		return ""
	}
	url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
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
