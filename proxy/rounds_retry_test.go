package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// clock takes the place of waiting, and remembers for how long it would have
// been.
type clock struct {
	mu    sync.Mutex
	waits []time.Duration
}

func (c *clock) wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, d)
	return ctx.Err()
}

func (c *clock) all() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.waits)
}

// asks is how often a request has our tool asked already since the client's last
// message.
func asks(q *proxytest.Request) int {
	n := 0
	for _, m := range slices.Backward(q.Prompt.Messages) {
		if m.Role == thread.User {
			break
		}
		if r, ok := m.Result(); ok {
			if r.Tool != recall.RecallTool {
				break
			}
			n++
		}
	}
	return n
}

func lookup(q *proxytest.Request) proxytest.Answer {
	return proxytest.Answer{Text: fmt.Sprintf("Look %d.", asks(q)), Calls: []thread.ToolCall{{
		ID: fmt.Sprintf("ours_%04d", q.N), Name: recall.RecallTool, Arguments: fmt.Sprintf(`{"query":"code of part %d"}`, asks(q)),
	}}}
}

func errorBody(api string, status int, message string) string {
	switch api {
	case wire.Anthropic:
		return fmt.Sprintf(`{"type":"error","error":{"type":"overloaded_error","message":%q},"request_id":"req_1"}`, message)
	case wire.Gemini:
		return fmt.Sprintf("{\n  \"error\": {\"code\": %d, \"message\": %q, \"status\": \"UNAVAILABLE\"}\n}", status, message)
	}
	return fmt.Sprintf(`{"error":{"message":%q,"type":"server_error","param":null,"code":"busy"}}`, message)
}

// troubles are what a provider does to a round that may pass.
var troubles = map[string]func(q *proxytest.Request) proxytest.Answer{
	"429": func(q *proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Status: 429, Body: errorBody(q.API, 429, "slow down"), Header: http.Header{"Retry-After": {"7"}}}
	},
	"500": func(q *proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Status: 500, Body: errorBody(q.API, 500, "oops")}
	},
	"529 without a word": func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Status: 529} },
	"a reset":            func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: "never heard", Reset: 1} },
	"an error in a stream": func(q *proxytest.Request) proxytest.Answer {
		if !q.Stream {
			return proxytest.Answer{Status: 503, Body: errorBody(q.API, 503, "busy")}
		}
		return proxytest.Answer{Stream: "event: error\ndata: " + strings.ReplaceAll(errorBody(q.API, 503, "busy"), "\n", " ") + "\n\n"}
	},
}

// waiting is an agent whose conversation has grown, behind a proxy that waits so.
func waiting(t *testing.T, up *proxytest.Upstream, api string, stream bool, wait func(context.Context, time.Duration) error) (*agent, *proxy.Proxy) {
	o := smallWindow()
	o.Waits(wait)
	url, p := start(t, up, o)
	a := newAgent(t, api, url, stream)
	a.grow(0, 24)
	return a, p
}

// goesOn asks once more, in the same conversation and under the same plan as s.
func (a *agent) goesOn(p *proxy.Proxy, s said) {
	a.t.Helper()
	a.user("Go on.")
	if next := a.ask(); next.thread() != s.thread() || next.action() != proxy.Planned || p.Totals().Faults != 0 {
		a.t.Errorf("the next step is %q, %q after %q: %+v", next.thread(), next.action(), s.thread(), p.Totals())
	}
}

// TestRoundsPersist: trouble that passes in a round that the client does not see
// stays unseen, and costs no lookup.
func TestRoundsPersist(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			for name, trouble := range troubles {
				t.Run(fmt.Sprintf("%s, %s, stream %t", name, api, stream), func(t *testing.T) {
					t.Parallel()
					up := strict(t)
					failed := map[int]int{}
					up.Model = func(q *proxytest.Request) proxytest.Answer {
						n := asks(q)
						switch {
						case n > 0 && failed[n] < 2:
							failed[n]++
							return trouble(q)
						case n < 3:
							return lookup(q)
						}
						return proxytest.Answer{Text: "Done."}
					}
					var c clock
					a, p := waiting(t, up, api, stream, c.wait)
					s := a.ask()
					if s.status != 200 || !strings.HasSuffix(s.text, "Done.") || !strings.Contains(s.text, "Look 2.") || len(s.calls) > 0 {
						t.Fatalf("status %d: %q", s.status, s.text)
					}
					if n := len(up.Requests()); n != 4+6 {
						t.Errorf("%d requests upstream", n)
					}
					waits := c.all()
					if len(waits) != 6 || name == "429" && waits[0] < 7*time.Second || name == "500" && (waits[0] != 500*time.Millisecond || waits[1] != time.Second) {
						t.Errorf("waited %v", waits)
					}
					var sum int64
					for _, q := range up.Requests() {
						sum += int64(q.Tokens + 1)
					}
					if s.input >= sum*6/10 {
						t.Errorf("usage is %d, with the tries that failed %d", s.input, sum)
					}
					a.goesOn(p, s)
				})
			}
		}
	}
}

// TestRoundsGiveUp: trouble that does not pass is the client's, as the provider
// wrote it; the client's next try goes on from the rounds that were done.
func TestRoundsGiveUp(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				down, most := true, 0
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					n := asks(q)
					most = max(most, n)
					switch {
					case n >= 2 && down:
						return proxytest.Answer{Status: 503, Body: errorBody(api, 503, "down for today"), Header: http.Header{"Retry-After": {"3"}}}
					case n < 3:
						return lookup(q)
					}
					return proxytest.Answer{Text: "Done."}
				}
				var c clock
				a, p := waiting(t, up, api, stream, c.wait)
				for range 2 { // the second time from where the first had come to
					res, raw := a.raw(t)
					if !stream && (res.StatusCode != 503 || string(raw) != errorBody(api, 503, "down for today") || res.Header.Get("Retry-After") != "3") {
						t.Fatalf("status %d, %v: %s", res.StatusCode, res.Header, raw)
					}
					if stream && !strings.Contains(string(raw), "down for today") {
						t.Fatalf("status %d: %s", res.StatusCode, raw)
					}
				}
				if n := len(up.Requests()); n != 2+4+4 && n != 2+4+1 {
					t.Errorf("%d requests upstream", n)
				}
				down = false
				before := len(up.Requests())
				s := a.ask()
				if s.status != 200 || !strings.HasSuffix(s.text, "Done.") || strings.Contains(s.text, "Look 0.") {
					t.Fatalf("status %d: %q", s.status, s.text)
				}
				if n := len(up.Requests()) - before; n != 2 || most != 3 {
					t.Errorf("%d more requests upstream, %d lookups", n, most)
				}
				a.goesOn(p, s)
				refusals(t, up)
			})
		}
	}
}

// raw asks, and reads what comes.
func (a *agent) raw(t testing.TB) (*http.Response, []byte) {
	t.Helper()
	res, err := a.client.Do(request(t, a.url+a.path(), a.body()))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, raw
}

// TestRoundsHopeless: what the provider says is not to be tried again, or not
// soon, is told at once.
func TestRoundsHopeless(t *testing.T) {
	for name, no := range map[string]proxytest.Answer{
		"an hour":     {Status: 429, Body: errorBody(wire.Anthropic, 429, "later"), Header: http.Header{"Retry-After": {"3600"}}},
		"not at all":  {Status: 500, Body: errorBody(wire.Anthropic, 500, "no"), Header: http.Header{"X-Should-Retry": {"false"}}},
		"another key": {Status: 401, Body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if asks(q) > 0 {
					return no
				}
				return lookup(q)
			}
			var c clock
			a, _ := waiting(t, up, wire.Anthropic, false, c.wait)
			if res, raw := a.raw(t); res.StatusCode != no.Status || string(raw) != no.Body || len(up.Requests()) != 2 || len(c.all()) != 0 {
				t.Errorf("status %d, %d requests, waited %v: %s", res.StatusCode, len(up.Requests()), c.all(), raw)
			}
		})
	}
}

// TestRoundsCanceled: a client that goes away while a round waits ends the wait.
func TestRoundsCanceled(t *testing.T) {
	for _, stream := range []bool{false, true} {
		up := strict(t)
		up.Model = func(q *proxytest.Request) proxytest.Answer {
			if asks(q) > 0 {
				return proxytest.Answer{Status: 529}
			}
			return lookup(q)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		a, _ := waiting(t, up, wire.Anthropic, stream, func(wait context.Context, _ time.Duration) error {
			cancel()
			<-wait.Done()
			ended <- wait.Err()
			return wait.Err()
		})
		res, err := a.client.Do(request(t, a.url+a.path(), a.body()).WithContext(ctx))
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if err == nil {
			t.Error("the client was answered")
		}
		if err := <-ended; err == nil || len(up.Requests()) != 2 {
			t.Errorf("stream %t: %v, %d requests upstream", stream, err, len(up.Requests()))
		}
	}
}

// TestRoundsCut: a round that breaks off when the client has seen some of it is
// not asked for again behind its back; the client's own next try has the lookups
// that were made.
func TestRoundsCut(t *testing.T) {
	words := strings.Repeat(strings.Repeat("word", 200)+" ", 10)
	for _, api := range half(t) {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			cut, most := true, 0
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				most = max(most, asks(q))
				switch {
				case asks(q) == 0:
					return lookup(q)
				case cut:
					return proxytest.Answer{Text: words, Reset: 7000}
				}
				return proxytest.Answer{Text: "Done."}
			}
			a, _ := waiting(t, up, api, true, func(context.Context, time.Duration) error { t.Error("a second try"); return nil })
			res, err := a.client.Do(request(t, a.url+a.path(), a.body()))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil || strings.Count(string(raw), "wordword") == 0 || len(up.Requests()) != 2 {
				t.Fatalf("%v, %d requests upstream: %s", err, len(up.Requests()), raw)
			}
			cut = false
			s := a.ask()
			if s.status != 200 || s.text != "Done." || len(up.Requests()) != 3 || most != 1 {
				t.Errorf("status %d, %q, %d requests upstream", s.status, s.text, len(up.Requests()))
			}
			a.user("Go on.")
			if next := a.ask(); next.thread() != s.thread() {
				t.Errorf("the next step is %q after %q", next.thread(), s.thread())
			}
		})
	}
}

// fullDisk is a store that takes what the client says, and nothing else.
type fullDisk struct{ store.Memory }

func (d *fullDisk) Append(ctx context.Context, id string, version int, messages []thread.Message) (*thread.Thread, error) {
	if len(messages) > 0 && strings.HasPrefix(string(messages[0].ID), "hidden:") {
		return nil, errDisk
	}
	return d.Memory.Append(ctx, id, version, messages)
}

// TestRoundsFault: where a lookup cannot be carried on because something of ours
// fails, the client's own request is asked in its place.
func TestRoundsFault(t *testing.T) {
	for _, api := range half(t) {
		for _, stream := range []bool{false, true} {
			up := strict(t)
			up.Window = 0
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if offered(q) {
					return lookup(q)
				}
				return proxytest.Answer{Text: "Done."}
			}
			disk := &fullDisk{}
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: disk, Plans: disk}}})
			a := newAgent(t, api, url, stream)
			a.grow(0, 24)
			want := a.body()
			s := a.ask()
			got := up.Requests()
			if s.status != 200 || !strings.HasSuffix(s.text, "Done.") || len(got) != 2 || !bytes.Equal(got[1].Body, want) || p.Totals().Faults == 0 {
				t.Errorf("%s, stream %t: status %d, %q, %d requests upstream, totals %+v", api, stream, s.status, s.text, len(got), p.Totals())
			}
			a.user("Go on.")
			if next := a.ask(); next.status != 200 {
				t.Errorf("%s, stream %t: the next step has status %d", api, stream, next.status)
			}
		}
	}
}

// TestRoundsClosed: a program that closes an answer in the middle of a round and
// asks again has the lookups that were made.
func TestRoundsClosed(t *testing.T) {
	for _, lookups := range []int{1, 2} {
		testRoundsClosed(t, lookups)
	}
}

func testRoundsClosed(t *testing.T, lookups int) {
	up := strict(t)
	hold, reached := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(hold) })
	held := true
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		switch {
		case asks(q) < lookups:
			return lookup(q)
		case held:
			close(reached)
			return proxytest.Answer{Text: "Half of it and more.", Reset: 100_000, Hold: hold}
		}
		return proxytest.Answer{Text: "Done."}
	}
	transport, err := proxy.NewTransport(&proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.CloseIdleConnections)
	a := newAgent(t, wire.Chat, up.URL, true)
	a.client = &http.Client{Transport: transport}
	a.grow(0, 24)
	res, err := a.client.Do(request(t, a.url+a.path(), a.body()))
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(io.Discard, res.Body)
	}()
	<-reached
	res.Body.Close()
	<-read
	<-up.Gone
	held = false
	if s := a.ask(); s.text != "Done." || len(up.Requests()) != 2+lookups {
		t.Errorf("%q, %d requests upstream", s.text, len(up.Requests()))
	}
}
