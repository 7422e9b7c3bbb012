package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestArrayStream: a stream that is one JSON array (Gemini without alt=sse) comes as it is written,
// whatever was done with its request.
func TestArrayStream(t *testing.T) {
	for name, c := range map[string]struct {
		results int
		action  string
	}{"small": {2, proxy.Passed}, "compacted": {24, proxy.Compacted}, "window not known": {60, proxy.Passed}} {
		goOn := make(chan struct{})
		provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json; charset=UTF-8")
			for n, piece := range []string{
				`[{"candidates":[{"content":{"role":"model","parts":[{"text":"one"}]}}]}`,
				`,{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9}}]`,
			} {
				if n > 0 {
					<-goOn
				}
				io.WriteString(w, piece)
				w.(http.Flusher).Flush()
			}
		}))
		o := smallWindow()
		if name == "window not known" {
			o.Window = 0
		}
		o.Gemini = provider.URL
		p, err := proxy.New(&o)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(p)
		a := newAgent(t, wire.Gemini, server.URL, true)
		a.grow(0, c.results)
		path, _, _ := strings.Cut(a.path(), "?")
		res, err := plainly.RoundTrip(request(t, a.url+path, a.body()))
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get(proxy.ActionHeader); got != c.action {
			t.Errorf("%s: %q", name, got)
		}
		first := make([]byte, 20)
		if _, err := io.ReadFull(res.Body, first); err != nil { // it comes before the rest is written
			t.Fatal(err)
		}
		close(goOn)
		rest, err := io.ReadAll(res.Body)
		res.Body.Close()
		if whole := gjson.Parse(string(first) + string(rest)); err != nil || whole.Get("1.candidates.0.content.parts.0.text").Str != "two" {
			t.Errorf("%s: %v, %s%s", name, err, first, rest)
		}
		server.Close()
		provider.Close()
	}
}
