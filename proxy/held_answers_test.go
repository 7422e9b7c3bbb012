package proxy_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/proxy/proxytest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chained is an agent that leaves its history to the provider: a request holds
// what is new and names the response before it.
type chained struct {
	*agent
	previous string
	always   string // members of each body
	actions  map[string]int

	compactions int // that were shown in answers
}

func newChained(t testing.TB, url string, stream bool) *chained {
	c := &chained{agent: newAgent(t, wire.Responses, url, stream), actions: map[string]int{}}
	c.stored = true
	return c
}

var responseID = regexp.MustCompile(`"id":"(resp_[^"]+)"`)

func (c *chained) ask() said {
	c.t.Helper()
	c.native = c.always
	if c.previous != "" {
		c.native += fmt.Sprintf(`,"previous_response_id":%q`, c.previous)
	}
	s, err := c.try()
	if err != nil {
		c.t.Fatal(err)
	}
	if s.status == 200 {
		all := responseID.FindAllSubmatch(s.raw, -1)
		c.previous = string(all[len(all)-1][1])
		c.history = nil
		for _, item := range gjson.Parse(s.element).Array() {
			if item.Get("type").Str == "compaction" {
				c.compactions++
			}
		}
	}
	c.actions[s.header.Get(proxy.ActionHeader)]++
	return s
}

func (c *chained) run() { c.toEnd(c.ask) }

// TestChain: a conversation that the provider holds passes as it is below the
// mark; above it the whole is put together here, and the task comes to its end
// where the provider alone would have refused it.
func TestChain(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			up := plainUpstream(t)
			up.Model = steps(40, false)
			url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
			c := newChained(t, url, stream)
			c.user("Read all parts.")
			c.run()
			refusals(t, up)
			totals := p.Totals()
			if totals.Faults != 0 || totals.Compactions < 1 || c.actions[proxy.Passed] < 3 || c.actions[proxy.Planned] < 3 {
				t.Errorf("totals %+v, actions %v", totals, c.actions)
			}
			requests := up.Requests()
			edited := 0
			for n, q := range requests {
				if n > 0 && !gjson.GetBytes(q.Body, "previous_response_id").Exists() {
					edited++
				}
			}
			if edited == 0 || edited == len(requests) {
				t.Errorf("%d of %d requests held their history themselves", edited, len(requests))
			}
			if last := string(requests[len(requests)-1].Body); !strings.Contains(last, "Read all parts.") || !strings.Contains(last, "part_039.go") {
				t.Errorf("the last request: %.500s", last)
			}
		})
	}
}

// TestChainRestart: a new proxy over the same store goes on with a conversation
// whose beginning it has not seen.
func TestChainRestart(t *testing.T) {
	up := plainUpstream(t)
	up.Model = steps(40, false)
	again := restarts(t, up)
	c := newChained(t, again(), true)
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
	if c.actions[proxy.Compacted] == 0 {
		t.Errorf("actions %v", c.actions)
	}
}

// TestUnknownResponse: a conversation that nobody here has seen passes; where it
// has grown too long the client is told that the response is not known, on which
// it sends its history itself.
func TestUnknownResponse(t *testing.T) {
	up := plainUpstream(t)
	direct := newChained(t, up.URL, false)
	direct.user(strings.Repeat(result(1), 8))
	direct.ask()

	url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
	c := newChained(t, url, false)
	c.previous = direct.previous
	c.user("Go on.")
	if s := c.ask(); s.status != 200 || s.header.Get(proxy.ReasonHeader) != "below-mark" && s.header.Get(proxy.ReasonHeader) != "server-side-history" {
		t.Fatalf("%d %v %.300s", s.status, s.header, s.raw)
	}
	sent := up.Requests()
	if body := string(sent[len(sent)-1].Body); gjson.Get(body, "previous_response_id").Str != direct.previous {
		t.Errorf("the upstream got %s", body)
	}
	c.previous = direct.previous
	c.user(strings.Repeat(result(2), 20))
	s := c.ask()
	if s.status != 400 || gjson.GetBytes(s.raw, "error.code").Str != "previous_response_not_found" || gjson.GetBytes(s.raw, "error.param").Str != "previous_response_id" {
		t.Errorf("%d %s", s.status, s.raw)
	}
}

// TestChainFork: two requests may go on with the same response.
func TestChainFork(t *testing.T) {
	up := plainUpstream(t)
	up.Model = func(q *proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: fmt.Sprint("answer ", q.N)} }
	url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
	c := newChained(t, url, false)
	for n := range 16 {
		c.user(result(n))
		c.ask()
	}
	at := c.previous
	for _, way := range []string{"left", "right"} {
		c.previous = at
		for n := range 8 {
			c.user(way + " " + result(100+n))
			c.ask()
		}
		sent := up.Requests()
		other := map[string]string{"left": "right part_", "right": "left File"}[way]
		full, _ := sjson.Delete(string(sent[len(sent)-1].Body), "tools")
		if strings.Contains(full, other) || !strings.Contains(full, way+" File") {
			t.Errorf("%s: the last request is of the other way", way)
		}
	}
	refusals(t, up)
	if totals := p.Totals(); totals.Faults != 0 || totals.Compactions == 0 {
		t.Errorf("%+v", totals)
	}
}

// TestProviderHoldsNothing: a client that names the response before is served also
// by a provider that keeps no responses, and by one that has forgotten them.
func TestProviderHoldsNothing(t *testing.T) {
	for name, forgets := range map[string]func(*proxytest.Upstream){
		"holds nothing": func(up *proxytest.Upstream) {
			up.Chains = false
			up.Refuse = func(body []byte) string {
				if gjson.GetBytes(body, "previous_response_id").Exists() {
					return "Unknown parameter: 'previous_response_id'."
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
				c := newChained(t, url, stream)
				c.user("Read all parts.")
				c.results(c.ask().calls, partOf)
				c.results(c.ask().calls, partOf)
				up.ForgetResponses()
				c.run()
				refused := refusedBy(up)
				if refused != 1 || p.Totals().Faults != 0 {
					t.Errorf("%d requests were refused, %+v", refused, p.Totals())
				}
				last := up.Requests()[len(up.Requests())-1]
				if body := string(last.Body); !strings.Contains(body, "Read all parts.") || !strings.Contains(body, "part_023.go") {
					t.Errorf("the last request: %.500s", body)
				}
			})
		}
	}
}

// faultyDocuments are documents of which one call does harm.
type faultyDocuments struct {
	store.Memory
	at   string
	harm func(context.Context) error
}

func (f *faultyDocuments) Put(ctx context.Context, d store.Document) (int, error) {
	if f.at == "put" {
		if err := f.harm(ctx); err != nil {
			return 0, err
		}
	}
	return f.Memory.Put(ctx, d)
}

func (f *faultyDocuments) Document(ctx context.Context, kind, id string) (store.Document, error) {
	if f.at == "document" {
		if err := f.harm(ctx); err != nil {
			return store.Document{}, err
		}
	}
	return f.Memory.Document(ctx, kind, id)
}

func (f *faultyDocuments) Documents(ctx context.Context, kind, after string, limit int) ([]store.Document, error) {
	if f.at == "documents" {
		if err := f.harm(ctx); err != nil {
			return nil, err
		}
	}
	return f.Memory.Documents(ctx, kind, after, limit)
}

// TestDocumentFaults: documents that fail cost a client nothing: its chain passes
// to the provider that holds it.
func TestDocumentFaults(t *testing.T) {
	for _, at := range []string{"put", "document", "documents"} {
		for name, harm := range map[string]func(context.Context) error{
			"fails":  func(context.Context) error { return errDisk },
			"panics": func(context.Context) error { panic("on purpose") },
			"hangs":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		} {
			t.Run(at+" "+name, func(t *testing.T) {
				t.Parallel()
				up := plainUpstream(t)
				up.Model = steps(4, false)
				url, p := start(t, up, proxy.Options{Window: window, Secret: []byte("a secret of this test"), Documents: &faultyDocuments{at: at, harm: harm}, Deadline: 100 * time.Millisecond,
					Config: palimpsest.Config{Counter: counter()}})
				c := newChained(t, url, true)
				c.user("Read all parts.")
				c.run()
				refusals(t, up)
				if p.Totals().Faults == 0 {
					t.Error("nobody was told")
				}
			})
		}
	}
}
