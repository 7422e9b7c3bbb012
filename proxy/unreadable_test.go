package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
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
