package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
)

// lanesUpstream answers in streams; a question with "slow" in it waits until something comes from goOn.
func lanesUpstream(t *testing.T, goOn <-chan struct{}) (url string, bodies func() []string) {
	var mu sync.Mutex
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		got = append(got, string(body))
		id := fmt.Sprint("resp_", len(got))
		mu.Unlock()
		if strings.Contains(gjson.GetBytes(body, "input.@reverse.0.content").Str, "slow") {
			select {
			case <-goOn:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(gjson.GetBytes(body, "input.@reverse.0.content").Str, "break") {
			fmt.Fprintf(w, "data: {\"type\":\"response.created\",\"response\":{\"id\":%q}}\n\n", id)
			return
		}
		fmt.Fprintf(w, "data: {\"type\":\"response.completed\",\"response\":{\"id\":%q,\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":%q}]}]}}\n\n", id, "answer "+id)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1", func() []string {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// dialLanes opens a WebSocket to a proxy. Its deadline only ends a test that would hang.
func dialLanes(t *testing.T, handler http.Handler) (ask func(text string), next func() gjson.Result) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c, _, err := websocket.Dial(ctx, strings.Replace(server.URL, "http", "ws", 1)+"/v1/responses", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseNow() })
	ask = func(text string) {
		t.Helper()
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return ask, func() gjson.Result {
		t.Helper()
		_, text, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return gjson.ParseBytes(text)
	}
}

// TestLanes: requests of one stream_id wait for each other, and for no others; what the connection
// holds is that of the lane, and the provider, which is asked over HTTP, never sees the member.
func TestLanes(t *testing.T) {
	goOn := make(chan struct{})
	endSlow := sync.OnceFunc(func() { close(goOn) })
	defer endSlow() // also if the test fails
	url, bodies := lanesUpstream(t, goOn)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	ask, next := dialLanes(t, p)
	say := func(lane, more, text string) {
		ask(`{"type":"response.create",` + lane + `"model":"m","store":false,` + more + `"input":[{"role":"user","content":"` + text + `"}]}`)
	}
	const a, b = `"stream_id":"lane-a",`, `"stream_id":"lane-\u0062",`
	say(a, "", "slow one")
	say(a, "", "another of lane a")
	say(b, "", "quick one")
	first := next()
	if first.Get("stream_id").Str != "lane-b" || first.Get("type").Str != "response.completed" {
		t.Fatalf("first came %s", first.Raw)
	}
	say("", "", "without a lane")
	if e := next(); e.Get("stream_id").Exists() || e.Get("type").Str != "response.completed" {
		t.Fatalf("then came %s", e.Raw)
	}
	say(b, fmt.Sprintf("%q:%q,", "previous_response_id", first.Get("response.id").Str), "and on")
	if e := next(); e.Get("stream_id").Str != "lane-b" {
		t.Fatalf("then came %s", e.Raw)
	}
	sent := bodies()
	if on := gjson.Get(sent[len(sent)-1], "input.#.content").Raw; !strings.Contains(on, "quick one") || !strings.Contains(on, "and on") || strings.Contains(on, "slow") {
		t.Errorf("lane b went on with %s", on)
	}
	endSlow()
	for n := range 2 {
		if e := next(); e.Get("stream_id").Str != "lane-a" || e.Get("type").Str != "response.completed" {
			t.Errorf("%d: %s", n, e.Raw)
		}
	}
	sent = bodies()
	if last := sent[len(sent)-1]; !strings.Contains(last, "another of lane a") {
		t.Errorf("the last request was %s", last)
	}
	for _, body := range sent {
		if strings.Contains(body, "stream_id") {
			t.Errorf("the provider got %s", body)
		}
	}
	ask(`{"type":"response.cancel","stream_id":"lane-a"}`)
	if e := next(); e.Get("stream_id").Str != "lane-a" || e.Get("type").Str != "error" {
		t.Errorf("an error came as %s", e.Raw)
	}
}

// TestSocketRate: each request on a WebSocket counts, in whichever lane, and one too many is refused
// with the connection left open.
func TestSocketRate(t *testing.T) {
	url, bodies := lanesUpstream(t, nil)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	ask, next := dialLanes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeCounted(w, r, func() error {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked == 3 {
				return errors.New("too many requests")
			}
			return nil
		})
	}))
	for n := range 4 {
		ask(fmt.Sprintf(`{"type":"response.create","stream_id":"%d","model":"m","input":"hi"}`, n%2))
		e := next()
		if n == 2 {
			if e.Get("status").Int() != http.StatusTooManyRequests || e.Get("error.code").Str != "rate_limit_exceeded" || !strings.Contains(e.Get("error.message").Str, "too many requests") {
				t.Errorf("the third was answered %s", e.Raw)
			}
		} else if e.Get("type").Str != "response.completed" {
			t.Errorf("request %d: %s", n, e.Raw)
		}
	}
	if len(bodies()) != 3 {
		t.Errorf("the provider got %d requests", len(bodies()))
	}
}

// TestLanesAreFreed: a client that names a new lane for each request is answered however many it names, and the lanes that
// were used last can be gone on with.
func TestLanesAreFreed(t *testing.T) {
	url, bodies := lanesUpstream(t, nil)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	ask, next := dialLanes(t, p)
	say := func(lane int, more, text string) {
		ask(fmt.Sprintf(`{"type":"response.create","stream_id":"%d","model":"m","store":false,%s"input":[{"role":"user","content":%q}]}`, lane, more, text))
	}
	const many = 70
	var ids []string
	for n := range many {
		say(n, "", fmt.Sprintf("of lane %d.", n))
		e := next()
		if ids = append(ids, e.Get("response.id").Str); e.Get("type").Str != "response.completed" {
			t.Fatalf("lane %d: %s", n, e.Raw)
		}
	}
	for _, lane := range []int{many - 1, many - 2} {
		say(lane, fmt.Sprintf("%q:%q,", "previous_response_id", ids[lane]), "and on")
		next()
		sent := bodies()
		if last := sent[len(sent)-1]; !strings.Contains(last, fmt.Sprintf("of lane %d.", lane)) {
			t.Errorf("lane %d went on with %s", lane, last)
		}
	}
}

// TestLaneBreaks: an answer that breaks off ends with an error of its lane, which goes on with what it had; another lane
// does not notice.
func TestLaneBreaks(t *testing.T) {
	goOn := make(chan struct{})
	url, bodies := lanesUpstream(t, goOn)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	ask, next := dialLanes(t, p)
	say := func(lane, more, text string) {
		ask(`{"type":"response.create","stream_id":"` + lane + `","model":"m","store":false,` + more + `"input":[{"role":"user","content":"` + text + `"}]}`)
	}
	say("b", "", "slow one")
	say("a", "", "good")
	goesOn := fmt.Sprintf("%q:%q,", "previous_response_id", next().Get("response.id").Str)
	say("a", goesOn, "break")
	for _, want := range []string{"response.created", "error"} {
		if e := next(); e.Get("stream_id").Str != "a" || e.Get("type").Str != want {
			t.Fatalf("want %s, got %s", want, e.Raw)
		}
	}
	say("a", goesOn, "and on")
	if e := next(); e.Get("stream_id").Str != "a" || e.Get("type").Str != "response.completed" {
		t.Errorf("the lane goes on with %s", e.Raw)
	}
	sent := bodies()
	if last := gjson.Get(sent[len(sent)-1], "input.#.content").Raw; !strings.Contains(last, "good") || strings.Contains(last, "break") {
		t.Errorf("it went on with %s", last)
	}
	close(goOn)
	if e := next(); e.Get("stream_id").Str != "b" || e.Get("type").Str != "response.completed" {
		t.Errorf("the other lane got %s", e.Raw)
	}
}

// TestLanePanics: a panic on the way of one request ends its connection, and nothing else, or its lane if it has a name.
func TestLanePanics(t *testing.T) {
	url, _ := lanesUpstream(t, nil)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeCounted(w, r, func() error {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked == 1 {
				panic("a fault")
			}
			return nil
		})
	}))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	for n := range 2 {
		c, _, err := websocket.Dial(ctx, strings.Replace(server.URL, "http", "ws", 1)+"/v1/responses", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if err := c.Write(ctx, websocket.MessageText, []byte(`{"type":"response.create","model":"m","input":"hi"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Read(ctx); (err != nil) != (n == 0) || ctx.Err() != nil {
			t.Errorf("connection %d: %v", n, err)
		}
	}
	if n := p.Totals().Faults; n != 1 {
		t.Errorf("%d faults are counted", n)
	}
	mu.Lock()
	asked = 0
	mu.Unlock()
	ask, next := dialLanes(t, server.Config.Handler)
	for _, want := range []string{"error", "response.completed"} {
		ask(`{"type":"response.create","stream_id":"a","model":"m","input":"hi"}`)
		if e := next(); e.Get("type").Str != want || e.Get("stream_id").Str != "a" {
			t.Errorf("want %s, got %s", want, e.Raw)
		}
	}
}

// TestLongStreamID: a lane keeps its stream_id, so that one of any length is refused.
func TestLongStreamID(t *testing.T) {
	url, bodies := lanesUpstream(t, nil)
	p, err := proxy.New(&proxy.Options{OpenAI: url})
	if err != nil {
		t.Fatal(err)
	}
	ask, next := dialLanes(t, p)
	for _, length := range []int{512, 513} {
		ask(`{"type":"response.create","stream_id":"` + strings.Repeat("a", length) + `","model":"m","input":"hi"}`)
		if e := next(); (e.Get("error.type").Str == "invalid_request_error") != (length > 512) {
			t.Errorf("%d bytes: %.200s", length, e.Raw)
		}
	}
	if len(bodies()) != 1 {
		t.Errorf("the provider got %d requests", len(bodies()))
	}
}
