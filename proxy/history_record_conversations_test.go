package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
)

// conversing is an agent whose history stands in a conversation of the provider's.
type conversing struct {
	*chained
	id string
}

func newConversing(t testing.TB, url string, stream bool, items ...string) *conversing {
	c := &conversing{chained: newChained(t, url, stream)}
	c.id = c.about(http.MethodPost, "", `{"items":[`+strings.Join(items, ",")+`]}`).Get("id").Str
	c.always = fmt.Sprintf(`,"conversation":%q`, c.id)
	if c.id == "" {
		t.Fatal("no conversation")
	}
	return c
}

// about is the answer to a request about the conversation.
func (c *conversing) about(method, path, body string) gjson.Result {
	c.t.Helper()
	r, err := http.NewRequest(method, c.url+"/v1/conversations"+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	res, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	s := told(c.t, res)
	if s.status != http.StatusOK {
		c.t.Fatalf("%s %s: %d %s", method, path, s.status, s.raw)
	}
	return gjson.ParseBytes(s.raw)
}

func (c *conversing) ask() said {
	c.previous = "" // the conversation is all that is named
	return c.chained.ask()
}

func (c *conversing) run() { c.toEnd(c.ask) }

// TestConversation: the provider's conversation gets everything, also what was answered outside of it; and
// items that the client has put there itself are in the requests that hold the whole.
func TestConversation(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			up := heldUpstream(t, 40)
			url, p := start(t, up, smallWindow())
			c := newConversing(t, url, stream, `{"type":"message","role":"developer","content":"Answer in English."}`, `{"type":"message","role":"user","content":"My name is Ada."}`)
			c.about(http.MethodPost, "/"+c.id+"/items", `{"items":[{"type":"message","role":"assistant","content":"Welcome, Ada."}]}`)
			c.user("Read all parts.")
			c.run()
			refusals(t, up)
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("%+v", totals)
			}
			for _, q := range modelRequests(up) {
				if !gjson.GetBytes(q.Body, "conversation").Exists() {
					wantTexts(t, string(q.Body), "Answer in English.", "My name is Ada.", "Welcome, Ada.")
					break
				}
			}
			items := c.about(http.MethodGet, "/"+c.id+"/items", "").Get("data").Raw
			for n := range 40 {
				if strings.Count(items, fmt.Sprintf(`"call_id":"call_%04d","output"`, n)) != 1 {
					t.Errorf("the provider's conversation has the result %d other than once", n)
				}
			}
			wantTexts(t, items, "All parts are read.")
		})
	}
}

// TestConversationUnknown: of a conversation that nobody here has seen, or of which the client
// has deleted something, all requests pass untouched.
func TestConversationUnknown(t *testing.T) {
	up := plainUpstream(t)
	up.Window = 0
	url, p := start(t, up, smallWindow())
	for name, before := range map[string]func(*conversing){
		"not seen":     func(c *conversing) {},
		"item deleted": func(c *conversing) { c.about(http.MethodDelete, "/"+c.id+"/items/msg_1", "") },
	} {
		t.Run(name, func(t *testing.T) {
			c := newConversing(t, map[bool]string{true: url, false: up.URL}[name == "item deleted"], false, `{"type":"message","role":"user","content":"My name is Ada."}`)
			c.url = url
			before(c)
			for n := range 30 {
				c.user(result(n))
				if s := c.ask(); s.status != 200 {
					t.Fatalf("%d %s", s.status, s.raw)
				}
			}
			if len(c.actions) != 1 || c.actions[proxy.Passed] != 30 {
				t.Errorf("actions %v", c.actions)
			}
		})
	}
	if p.Totals().Faults != 0 {
		t.Errorf("%+v", p.Totals())
	}
}

// TestConversationFaults: a conversation of which something could not be kept is not known
// any more: nothing is left out of it silently.
func TestConversationFaults(t *testing.T) {
	up := heldUpstream(t, 40)
	up.Window = 0
	documents := &faultyDocuments{harm: func(context.Context) error { return errDisk }}
	url, p := start(t, up, proxy.Options{Window: window, Secret: []byte("a secret of this test"), Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Documents: documents}}})
	c := newConversing(t, url, true)
	c.user("Read all parts.")
	for n := range 4 {
		if documents.at = ""; n == 2 {
			documents.at = "put"
		}
		c.results(c.ask().calls, partOf)
	}
	c.run()
	refusals(t, up)
	if p.Totals().Faults == 0 || len(c.actions) != 1 {
		t.Errorf("%+v, actions %v", p.Totals(), c.actions)
	}
}

// TestConversationHandOver: where the provider does not take what was said, the client is
// answered all the same, and somebody is told.
func TestConversationHandOver(t *testing.T) {
	up := heldUpstream(t, 40)
	var told atomic.Int64
	sink := event.Func(func(_ context.Context, e event.Event) {
		if e.Type == event.Failed && e.Err == "provider" && e.Details["where"] == "proxy_conversation" {
			told.Add(1)
		}
	})
	url, p := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Events: sink}, Base: refusing{http.DefaultTransport}})
	c := newConversing(t, url, false)
	c.user("Read all parts.")
	c.run()
	if totals := p.Totals(); totals.Compactions == 0 || totals.Faults != 0 || told.Load() < 3 {
		t.Errorf("%+v, told %d times", totals, told.Load())
	}
}

// refusing takes no items.
type refusing struct{ http.RoundTripper }

func (r refusing) RoundTrip(q *http.Request) (*http.Response, error) {
	if strings.HasSuffix(q.URL.Path, "/items") {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: q}, nil
	}
	return r.RoundTripper.RoundTrip(q)
}
