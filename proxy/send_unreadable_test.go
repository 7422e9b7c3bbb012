package proxy_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// brotli is a provider that compresses its answers by brotli where the client accepts that. What it
// sends then only looks so: nobody here can read it.
type brotli struct {
	http.RoundTripper
	accepted []string
}

func (b *brotli) RoundTrip(r *http.Request) (*http.Response, error) {
	b.accepted = append(b.accepted, r.Header.Get("Accept-Encoding"))
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil && strings.Contains(r.Header.Get("Accept-Encoding"), "br") {
		res.Body.Close()
		res.Header.Set("Content-Encoding", "br")
		res.Header.Del("Content-Length")
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader([]byte("\x0b\x02\x80hello\x03"))), -1
	}
	return res, err
}

// TestOverflowIsReadable: the provider is asked for an answer that can be read wherever a request may
// be too long, also where nothing speaks for it: in a window that is not known, and in one that is
// far larger than what the provider really has.
func TestOverflowIsReadable(t *testing.T) {
	for name, given := range map[string]int{"not known": 0, "far larger": 1_000_000} {
		up, base := strict(t), &brotli{RoundTripper: plainly}
		url, p := start(t, up, proxy.Options{Window: given, Base: base, Config: palimpsest.Config{Counter: counter()}})
		a := newAgent(t, wire.Chat, url, false)
		a.header.Set("Accept-Encoding", "gzip, br")
		a.grow(0, 35)
		s, err := a.try()
		if err != nil || s.status != 200 || s.action() != proxy.Recovered || p.Totals().Faults != 0 {
			t.Errorf("%s: status %d, %q, %v; accepted was %q", name, s.status, s.action(), err, base.accepted)
		}
		small := newAgent(t, wire.Chat, url, false)
		small.header.Set("Accept-Encoding", "gzip, br")
		small.user("Hello.")
		before := len(base.accepted)
		post(t, small.url+small.path(), small.body(), small.header)
		if got := base.accepted[before]; got != "gzip, br" {
			t.Errorf("%s: a small request accepts %q", name, got)
		}
	}
}

// faultEvents collects where faults were.
type faultEvents struct {
	mu    sync.Mutex
	where []string
}

func (f *faultEvents) Emit(_ context.Context, e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if where, ok := e.Details["where"].(string); ok {
		f.where = append(f.where, where)
	}
}

// TestUnreadableAnswer: an answer of the provider that cannot be read reaches the client byte for byte,
// and an event tells of it.
func TestUnreadableAnswer(t *testing.T) {
	const whole, stream = `{"odd": [1, 2`, "data: {\"odd\": [1\n\ndata: {\"type\":\"more\"}\n\n"
	for _, api := range apis {
		for _, streamed := range []bool{false, true} {
			up, faults := strict(t), &faultEvents{}
			up.Model = func(q *proxytest.Request) proxytest.Answer {
				if !offered(q) {
					return proxytest.Answer{Text: "ok"}
				}
				if streamed {
					return proxytest.Answer{Stream: stream}
				}
				return proxytest.Answer{Status: 200, Body: whole}
			}
			url, _ := start(t, up, proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter(), Events: faults}})
			a := newAgent(t, api, url, streamed)
			a.grow(0, 24)
			want := whole
			if streamed {
				want = stream
			}
			if s := a.peek0(); s.status != 200 || string(s.raw) != want {
				t.Errorf("%s, stream %t: status %d: %q", api, streamed, s.status, s.raw)
			}
			faults.mu.Lock()
			if !slices.Contains(faults.where, "proxy_answer") {
				t.Errorf("%s, stream %t: the events tell of %q", api, streamed, faults.where)
			}
			faults.mu.Unlock()
		}
	}
}
