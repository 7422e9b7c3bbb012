package proxy_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// chained is an agent whose requests name the response before.
type chained struct {
	*heldClient
	always      string // members of each body
	compactions int    // in answers
}

func newChained(t testing.TB, url string, stream bool) *chained {
	c := &chained{heldClient: newHeldClient(newAgent(t, wire.Responses, url, stream))}
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

// TestUnknownResponse: a conversation that nobody here has seen passes; where it
// has grown too long the client is told that the response is not known, on which
// it sends its history itself.
func TestUnknownResponse(t *testing.T) {
	up := plainUpstream(t)
	direct := newChained(t, up.URL, false)
	direct.user(strings.Repeat(result(1), 8))
	direct.ask()

	url, _ := start(t, up, smallWindow())
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
				up := heldUpstream(t, 4)
				url, p := start(t, up, proxy.Options{Window: window, Secret: []byte("a secret of this test"), Deadline: 100 * time.Millisecond,
					Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Documents: &faultyDocuments{at: at, harm: harm}}}})
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
