package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// lookupStore is a store that does harm once the model looks something up, until a round follows.
type lookupStore struct {
	store.Memory
	armed atomic.Bool
	harm  func(context.Context) error
}

func (f *lookupStore) Load(ctx context.Context, id string) (*thread.Thread, error) {
	if f.armed.CompareAndSwap(true, false) {
		if err := f.harm(ctx); err != nil {
			return nil, err
		}
	}
	return f.Memory.Load(ctx, id)
}

// TestLookupFaults: a store that fails or panics while a lookup is answered costs the lookup, and not
// the answer; one that hangs does so for no longer than the deadline.
func TestLookupFaults(t *testing.T) {
	for name, harm := range map[string]func(context.Context) error{
		"fails":  func(context.Context) error { return errDisk },
		"panics": func(context.Context) error { panic("on purpose") },
		"hangs": func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a lookup has no deadline")
			}
			return errDisk // without the wait
		},
	} {
		for _, api := range apis {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %t", name, api, stream), func(t *testing.T) {
					t.Parallel()
					up, l := strict(t), newReports()
					f := &lookupStore{harm: harm}
					up.Model = func(q *proxytest.Request) proxytest.Answer {
						if asks(q) > 0 {
							return proxytest.Answer{Text: "Done."}
						}
						f.armed.Store(true)
						return lookup(q)
					}
					url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Store: store.Tenant{Log: f, Plans: f}, Events: l}})
					a := newAgent(t, api, url, stream)
					a.grow(0, 24)
					s := a.ask()
					if s.status != 200 || !strings.HasSuffix(s.text, "Done.") || f.armed.Load() {
						t.Errorf("status %d: %q", s.status, s.text)
					}
					all := up.Requests()
					if len(all) != 2 {
						t.Fatalf("%d requests upstream", len(all))
					}
					if text, _ := last(all[1]); name == "panics" && !strings.Contains(text, "cannot be read now") {
						t.Errorf("the model was told %q", text)
					}
					if all := l.failures(); name == "panics" && len(all) != 1 {
						t.Errorf("failures %v", all)
					}
				})
			}
		}
	}
}

// panicking panics in place of the second request.
type panicking struct {
	http.RoundTripper
	asked atomic.Int64
}

func (p *panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.asked.Add(1) == 2 {
		panic("on purpose")
	}
	return p.RoundTripper.RoundTrip(r)
}

// TestPanicInARound: what panics while an answer in one piece is joined leaves the provider's last
// answer to the client, and no room of its request reserved.
func TestPanicInARound(t *testing.T) {
	for _, api := range half(t) {
		up, memory := strict(t), proxy.NewMemory(nil)
		up.Model = lookup
		o := smallWindow()
		o.Base, o.Memory = &panicking{RoundTripper: plainly}, memory
		url, p := start(t, up, o)
		a := newAgent(t, api, url, false)
		a.large = true
		a.grow(0, 24)
		s, err := a.try()
		if err != nil || s.status != 200 || s.text != "Look 0." || p.Totals().Faults != 1 {
			t.Errorf("%s: status %d, %q, %v, %+v", api, s.status, s.text, err, p.Totals())
		}
		if n := memory.Bodies(); n != 0 {
			t.Errorf("%s: %d bytes stay reserved", api, n)
		}
	}
}

// TestPanicLeavesNoRoom: neither does a panic of the connection to the provider.
func TestPanicLeavesNoRoom(t *testing.T) {
	up, memory := strict(t), proxy.NewMemory(nil)
	base := &panicking{RoundTripper: plainly}
	base.asked.Store(1)
	transport, err := proxy.NewTransport(&proxy.Options{Base: base, Memory: memory})
	if err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, wire.Chat, up.URL, false)
	a.large = true
	a.grow(0, 24)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		transport.RoundTrip(request(t, a.url+a.path(), a.body()))
	}()
	if n := memory.Bodies(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
}
