package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// quiet is a provider that answers at once, without a connection.
type quiet struct{}

const okAnswer = `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

func (quiet) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(okAnswer)), Request: r}, nil
}

// BenchmarkStep is what a step of a conversation costs here, without connections:
// its body is the last one and a step more.
func BenchmarkStep(b *testing.B) {
	for _, size := range []int{100 << 10, 400 << 10, 1200 << 10, 4 << 20} {
		for _, mode := range []string{"below the mark", "plan hit"} {
			b.Run(fmt.Sprintf("%s/%dKB", mode, size>>10), func(b *testing.B) { stepped(b, wire.Anthropic, mode, size) })
		}
	}
	for _, api := range apis[1:] {
		b.Run("plan hit/1200KB/"+api, func(b *testing.B) { stepped(b, api, "plan hit", 1200<<10) })
	}
}

func stepped(b *testing.B, api, mode string, size int) {
	o := proxy.Options{Base: quiet{}, Window: size / 8, Config: palimpsest.Config{Counter: counter()}}
	if mode != "plan hit" {
		o.Window = size
	}
	var tr *proxy.Transport
	var a *agent
	ask := func(body []byte) {
		res, err := tr.RoundTrip(request(b, "https://example.invalid"+paths[api], body))
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	begin := func() {
		var err error
		if tr, err = proxy.NewTransport(&o); err != nil {
			b.Fatal(err)
		}
		a = long(b, api, size)
		ask(a.body())
	}
	begin()
	b.ReportAllocs()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		a.step(n)
		body := bytes.Clone(a.body())
		if len(body) > size+size/4 { // each step makes it longer, and the figure is for this size
			begin()
			a.step(n)
			body = bytes.Clone(a.body())
		}
		b.StartTimer()
		start := time.Now()
		ask(body)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(milliseconds(took, 0.5), "p50-ms")
	b.ReportMetric(milliseconds(took, 0.99), "p99-ms")
}

// milliseconds is the duration below which a share of a sorted list lies.
func milliseconds(sorted []time.Duration, share float64) float64 {
	return float64(sorted[int(share*float64(len(sorted)-1))].Microseconds()) / 1000
}

// step is a small step of an agent's.
func (a *agent) step(n int) {
	c := thread.ToolCall{ID: fmt.Sprintf("step_%06d", n), Name: "run", Arguments: fmt.Sprintf(`{"n":%d}`, n)}
	a.calls(c)
	a.results([]thread.ToolCall{c}, func(thread.ToolCall) string { return strings.Repeat("ok, done. ", 40) })
}
