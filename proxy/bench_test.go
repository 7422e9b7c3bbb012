package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// BenchmarkProxy measures what the proxy adds to a plain httputil.ReverseProxy,
// request by request in the same run. Steps of an agent: each body is the last
// one and a step more.
func BenchmarkProxy(b *testing.B) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	}))
	b.Cleanup(upstream.Close)
	target, err := url.Parse(upstream.URL)
	if err != nil {
		b.Fatal(err)
	}
	base := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}
	plain := httptest.NewServer(&httputil.ReverseProxy{Transport: base, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	b.Cleanup(plain.Close)
	for _, size := range []int{1 << 10, 100 << 10, 400 << 10, 1200 << 10, 4 << 20} {
		for _, mode := range []string{"pass-through", "looked at", "plan hit", "compaction"} {
			if size < 100<<10 && mode != "pass-through" {
				continue // too small to be compacted
			}
			b.Run(fmt.Sprintf("%s/%dKB", mode, size>>10), func(b *testing.B) {
				o := proxy.Options{Anthropic: upstream.URL, Base: base, Config: palimpsest.Config{Counter: counter()}}
				switch mode {
				case "pass-through":
					o.Window = 1 << 30
				case "looked at":
					o.Window = size // tokens: four times what the body takes
				default:
					o.Window = size / 8
				}
				p, err := proxy.New(&o)
				if err != nil {
					b.Fatal(err)
				}
				ours := httptest.NewServer(p)
				b.Cleanup(ours.Close)
				measure(b, size, mode, plain.URL, ours.URL)
			})
		}
	}
}

func measure(b *testing.B, size int, mode, plain, ours string) {
	a := newAgent(b, wire.Anthropic, "", false)
	for n := 0; len(strings.Join(a.history, "")) < size-9<<10; n += 4 {
		a.grow(n, 4)
	}
	if len(a.history) == 0 {
		a.user("hello")
	}
	ask := func(url string, body []byte) time.Duration {
		start := time.Now()
		res, err := plainly.RoundTrip(request(b, url+paths[a.api], body))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			b.Fatal(res.Status)
		}
		return time.Since(start)
	}
	first := a.history[0]
	ask(plain, a.body())
	ask(ours, a.body())
	var there, here []time.Duration
	sent := 0
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		switch mode {
		case "plan hit", "looked at", "pass-through":
			step := thread.ToolCall{ID: fmt.Sprintf("step_%06d", n), Name: "run"}
			a.history = append(a.history, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"run","input":{"n":%d}}]}`, step.ID, n))
			a.results([]thread.ToolCall{step}, func(thread.ToolCall) string { return strings.Repeat("ok, done. ", 40) })
		case "compaction":
			a.history[0] = strings.Replace(first, "Read all", fmt.Sprintf("Task %d: read all", n), 1) // a conversation of its own
		}
		body := bytes.Clone(a.body())
		sent = len(body)
		there = append(there, ask(plain, body))
		b.StartTimer()
		here = append(here, ask(ours, body))
	}
	slices.Sort(there)
	slices.Sort(here)
	at := func(list []time.Duration, share float64) float64 {
		return float64(list[int(share*float64(len(list)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(there, 0.5), "plain-p50-ms")
	b.ReportMetric(at(here, 0.5)-at(there, 0.5), "added-p50-ms")
	b.ReportMetric(at(here, 0.99)-at(there, 0.99), "added-p99-ms")
	b.ReportMetric(float64(sent)/1024, "KB")
}
