package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestMemory: several tenants with several conversations at once are remembered
// within a bound; what is forgotten goes on under the same plan, and each provider is
// sent the same bytes as by proxies that forget nothing.
func TestMemory(t *testing.T) {
	const tenants, conversations, bound = 3, 4, 4 << 20
	every := 6
	if corpus.Long() {
		every = 3
	}
	run := func(memory *proxy.Memory, check func(seen int)) (sent [tenants][]*proxytest.Request) {
		var ups [tenants]*proxytest.Upstream
		var agents [tenants][conversations]*agent
		var threads [tenants][conversations]string
		for i := range tenants {
			ups[i] = strict(t)
			kept := &store.Memory{}
			url, _ := start(t, ups[i], proxy.Options{Window: window, Memory: memory, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}})
			for j := range conversations {
				a := newAgent(t, apis[j], url, false)
				a.header.Set("X-Session-Id", fmt.Sprint(j))
				a.grow(0, 14)
				agents[i][j] = a
			}
		}
		seen := 0
		for n := 14; n < 32; n += every {
			for j := range conversations {
				for i := range tenants {
					a := agents[i][j]
					a.grow(n, every)
					s := a.peek()
					if s.status != 200 || threads[i][j] != "" && s.thread() != threads[i][j] || n > 28 && s.action() == proxy.Passed {
						t.Fatalf("tenant %d, %s, step %d: status %d, %q in %q after %q", i, a.api, n, s.status, s.action(), s.thread(), threads[i][j])
					}
					threads[i][j] = s.thread()
					seen += len(a.body())
					check(seen)
				}
			}
		}
		for i := range tenants {
			sent[i] = ups[i].Requests()
		}
		return sent
	}
	small := proxy.NewMemory(&proxy.MemoryOptions{All: bound, Tenant: bound / 2})
	most := 0
	bounded := run(small, func(int) {
		if most = max(most, small.Bytes()); small.Bytes() > bound {
			t.Fatalf("%d bytes are remembered, the bound is %d", small.Bytes(), bound)
		}
	})
	if most < bound/2 {
		t.Errorf("at most %d bytes were remembered", most)
	}
	large := proxy.NewMemory(nil)
	whole := run(large, func(int) {})
	if large.Bytes() < 2*bound {
		t.Fatalf("%d bytes without a bound: nothing had to be forgotten", large.Bytes())
	}
	for i := range tenants {
		for n := range whole[i] {
			if !bytes.Equal(bounded[i][n].Body, whole[i][n].Body) {
				t.Fatalf("tenant %d, request %d differs where memory has a bound", i, n)
			}
		}
	}
}

// TestChangedSystem: a client that changes its system prompt on the way goes on with
// the same conversation, also where the process that has seen it is gone.
func TestChangedSystem(t *testing.T) {
	for _, api := range []string{wire.Anthropic, wire.Chat} {
		up := strict(t)
		kept := &store.Memory{}
		o := proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: kept, Plans: kept, Documents: kept}}}
		url, _ := start(t, up, o)
		a := newAgent(t, api, url, false)
		a.grow(0, 24)
		first := a.peek()
		a.system = "You are a careless agent. Work in leaps."
		a.grow(24, 1)
		if s := a.peek(); s.thread() != first.thread() || s.action() != proxy.Planned {
			t.Errorf("%s: %q, %q after %q", api, s.action(), s.thread(), first.thread())
		}
		a.url, _ = start(t, up, o)
		a.tools = append(a.tools, "write_file")
		a.grow(25, 1)
		if s := a.peek(); s.thread() != first.thread() || s.action() != proxy.Planned {
			t.Errorf("%s, after a restart: %q, %q after %q", api, s.action(), s.thread(), first.thread())
		}
		other := newAgent(t, api, a.url, false)
		other.history = append(other.history, a.history[0])
		other.system = "You are another agent. " + strings.Repeat("Mind the gap. ", 2000)
		if s := other.peek(); s.thread() == first.thread() || strings.HasPrefix(s.thread(), first.thread()) {
			t.Errorf("%s: another conversation that begins in the same words is %q", api, s.thread())
		}
	}
}

// TestBusy: what there is no room for is answered with 503 and Retry-After, and passes
// once what is at work has been answered; small requests pass all the time.
func TestBusy(t *testing.T) {
	up := strict(t)
	hold := make(chan struct{})
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if q.N == 1 {
			return proxytest.Answer{Text: "one two three", Hold: hold}
		}
		return proxytest.Answer{Text: "ok"}
	}
	url, p := start(t, up, proxy.Options{Window: window, Memory: proxy.NewMemory(&proxy.MemoryOptions{Bodies: 150 << 10}), Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Anthropic, url, true)
	a.grow(0, 24)
	r, err := http.NewRequest(http.MethodPost, url+a.path(), bytes.NewReader(a.body()))
	if err != nil {
		t.Fatal(err)
	}
	first, err := plainly.RoundTrip(r) // its answer has begun
	if err != nil {
		t.Fatal(err)
	}
	if s := a.peek(); s.status != 503 || s.header.Get("Retry-After") == "" || s.header.Get(proxy.ReasonHeader) != "busy" || len(up.Requests()) != 1 {
		t.Errorf("status %d, %v: %s", s.status, s.header, s.raw)
	}
	bomb := packed(t, "gzip", a.body())
	if res := post(t, url+a.path(), bomb, http.Header{"Content-Encoding": {"gzip"}}); res.StatusCode != 503 {
		t.Errorf("%d packed bytes: %s", len(bomb), res.Status)
	}
	small := newAgent(t, wire.Anthropic, url, false)
	small.user("hello")
	if s := small.peek(); s.status != 200 {
		t.Errorf("a small request: %d %s", s.status, s.raw)
	}
	close(hold)
	if _, err := io.Copy(io.Discard, first.Body); err != nil {
		t.Error(err)
	}
	first.Body.Close()
	a.stream = false
	for range 3 {
		if s := a.peek(); s.status != 200 || s.action() == proxy.Passed {
			t.Errorf("afterwards: %d %q %s", s.status, s.action(), s.raw)
		}
	}
	if totals := p.Totals(); totals.Faults != 0 {
		t.Errorf("totals: %+v", totals)
	}
}
