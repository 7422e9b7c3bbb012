package proxy_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

var counter = sync.OnceValue(func() *token.Counter {
	c, err := token.New("o200k", nil)
	if err != nil {
		panic(err)
	}
	return c
})

// start runs a proxy in front of an upstream.
func start(t testing.TB, up *proxytest.Upstream, o proxy.Options) (string, *proxy.Proxy) {
	t.Helper()
	if o.Waiting() {
		o.Waits(func(ctx context.Context, _ time.Duration) error { return ctx.Err() })
	}
	o.Anthropic, o.OpenAI, o.Gemini = up.URL, up.URL+"/v1", up.URL
	p, err := proxy.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return server.URL, p
}

// restarts gives the address of a new proxy each time, over one store.
func restarts(t *testing.T, up *proxytest.Upstream) func() string {
	file := "sqlite:" + filepath.Join(t.TempDir(), "kept.db")
	return func() string {
		db, err := dsn.Open(t.Context(), file, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		kept := db.Tenant("")
		url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept.Log, Plans: kept.Plans, Documents: kept.Documents}}})
		return url
	}
}

// toEnd takes the task of steps to its end.
func (a *agent) toEnd(ask func() said) {
	a.t.Helper()
	for range 200 {
		s := ask()
		if s.status != 200 {
			a.t.Fatalf("status %d: %.300s", s.status, s.raw)
		}
		if len(s.calls) == 0 {
			return
		}
		a.results(s.calls, partOf)
	}
	a.t.Fatal("the task has no end")
}

// refusedBy is how many requests the upstream refused.
func refusedBy(up *proxytest.Upstream) (n int) {
	for _, q := range up.Requests() {
		if q.Refused != "" {
			n++
		}
	}
	return n
}

// smallWindow are options of a proxy for models with that window.
func smallWindow() proxy.Options {
	return proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}}
}

// window is that of the tests, in tokens. It is small since much of what they take is to
// make and read requests that fill it; results are as small beside it.
const window = 30_000

func strict(t testing.TB) *proxytest.Upstream {
	up := proxytest.New(t)
	up.Window, up.BindThinking, up.Count = window, true, counted()
	return up
}

// counted counts as the proxy does.
func counted() func(*prompt.Prompt) int {
	counting := counter().Remembering(nil)
	var mu sync.Mutex
	return func(p *prompt.Prompt) int {
		mu.Lock()
		defer mu.Unlock()
		return counting.Prompt(p)
	}
}

// result is what a tool of the task gives: 4 KB that hold one fact.
func result(step int) string { return resultOf(step, 4<<10) }

// result is result, or of 8 KB.
func (a *agent) result(step int) string {
	if a.large {
		return resultOf(step, 8<<10)
	}
	return result(step)
}

func resultOf(step, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "File part_%03d.go\n", step)
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%4d: func handle%d_%d(ctx context.Context, order Order) error { return queue.Push(ctx, %d, order.ID) }\n", n, step, n, step*31+n*7)
		if n == 20 {
			fmt.Fprintf(&b, "  21: // the code of part %d is K%05d\n", step, step*7919%100000)
		}
	}
	return b.String()
}

// steps is the model of the task: it reads one part after the other, now and
// then two at once, and ends after n results.
func steps(n int, think bool) func(*proxytest.Request) proxytest.Answer {
	var mu sync.Mutex
	at := 0
	return func(q *proxytest.Request) proxytest.Answer {
		mu.Lock()
		defer mu.Unlock()
		a := proxytest.Answer{}
		if think {
			a.Thinking = fmt.Sprintf("Part %d is next.", at)
		}
		if at >= n {
			a.Text = "All parts are read."
			return a
		}
		a.Text = fmt.Sprintf("Now part %d.", at)
		both := at%7 == 3
		for range 2 {
			a.Calls = append(a.Calls, thread.ToolCall{ID: fmt.Sprintf("call_%04d", at), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, at)})
			at++
			if !both {
				break
			}
		}
		return a
	}
}

// streams are the ways in which a test asks an API: whole or as a stream, and in a
// long run both. Otherwise one of the APIs is asked, in one way; which these are
// differs from test to test.
func streams(t *testing.T, api string) []bool {
	both := []bool{false, true}
	if corpus.Long() {
		return both
	}
	n := slices.Index(apis, api) + len(t.Name())
	if n%len(apis) > 0 {
		return nil
	}
	way := n / len(apis) % 2
	return both[way : way+1]
}

// ways are the ways in which a long task over one API is asked: whole or as a stream, in a long
// run both.
func ways(t *testing.T) []bool {
	both := []bool{false, true}
	if corpus.Long() {
		return both
	}
	way := len(t.Name()) % 2
	return both[way : way+1]
}

// half are two of the APIs, in a long run all; which two differs from test to test.
func half(t *testing.T) []string {
	if corpus.Long() {
		return apis
	}
	n := len(t.Name()) % len(apis)
	return []string{apis[n], apis[(n+1)%len(apis)]}
}

// TestLongTask: an agent whose history grows far over the window finishes its
// task through the proxy; no request is refused, and between compactions the
// prefix stays as it was.
func TestLongTask(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				up.Model = steps(60, true)
				url, p := start(t, up, smallWindow())
				a := newAgent(t, api, url, stream)
				a.think = api == wire.Anthropic
				runTask(t, a, 60)
				requests := up.Requests()
				for _, q := range requests {
					if q.Refused != "" {
						t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
					}
				}
				totals := p.Totals()
				if totals.Compactions < 2 || totals.Faults != 0 || totals.Recovered != 0 {
					t.Errorf("totals: %+v", totals)
				}
				prefixes(t, requests, int(totals.Compactions))
			})
		}
	}
}

// TestLargeFixedParts: an agent whose system prompt fills a quarter of the window,
// and that asks for answers of half of it as Claude Code does, still has room for
// its conversation.
func TestLargeFixedParts(t *testing.T) {
	up := strict(t)
	up.Model = steps(20, true)
	url, p := start(t, up, smallWindow())
	a := newAgent(t, wire.Anthropic, url, true)
	a.think, a.output = true, window/2
	a.system = strings.Repeat("The rule of this house: tests first, then the change, then the notes. ", 450)
	runTask(t, a, 20)
	for _, q := range up.Requests() {
		if q.Refused != "" {
			t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
		}
	}
	if totals := p.Totals(); totals.Compactions < 1 || totals.Recovered != 0 || totals.Faults != 0 {
		t.Errorf("totals: %+v", totals)
	}
}

func runTask(t testing.TB, a *agent, n int) {
	t.Helper()
	a.user("Read all parts in order and tell me when you are done. Never change a file.")
	done := 0
	for range 3 * n {
		s := a.ask()
		if s.status != 200 {
			t.Fatalf("after %d results: status %d: %.300s", done, s.status, s.raw)
		}
		if len(s.calls) == 0 {
			if s.text != "All parts are read." || done != n && done != n+1 {
				t.Fatalf("after %d results the agent was told %q", done, s.text)
			}
			return
		}
		a.results(s.calls, func(thread.ToolCall) string { done++; return a.result(done - 1) })
	}
	t.Fatal("the task has no end")
}
