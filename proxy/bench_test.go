package proxy_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/wire"
)

// modes are what a request can come to: nobody knows the model's window; the window is
// known, and the request far from it; there is a plan, and this is the next step under
// it; a plan has to be made, for a conversation that was never seen.
var modes = []string{"pass-through", "below the mark", "plan hit", "compaction"}

// BenchmarkProxy measures what the proxy adds to a plain httputil.ReverseProxy, both
// in processes of their own, request by request in the same run. Each body is the
// last one and a step more, except for compactions.
func BenchmarkProxy(b *testing.B) {
	upstream := answering(b)
	plain := startChild(b, served{Upstream: upstream})
	for _, size := range []int{1 << 10, 100 << 10, 400 << 10, 1200 << 10, 4 << 20} {
		for _, mode := range modes {
			if size < 100<<10 && mode != "pass-through" {
				continue // too small to be looked at
			}
			b.Run(fmt.Sprintf("%s/%dKB", mode, size>>10), func(b *testing.B) {
				window := 0
				switch mode {
				case "below the mark":
					window = size // tokens: four times what the body takes
				case "plan hit", "compaction":
					window = size / 8
				}
				measure(b, size, mode, plain, startChild(b, served{Upstream: upstream, Ours: true, Window: window}))
			})
		}
	}
}

// answering is a provider that has one answer.
func answering(b testing.TB) string {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, okAnswer)
	}))
	b.Cleanup(upstream.Close)
	return upstream.URL
}

// long is an agent whose history has about so many bytes.
func long(b testing.TB, api string, size int) *agent {
	a := newAgent(b, api, "", false)
	for n := 0; len(strings.Join(a.history, "")) < size-9<<10; n += 4 {
		a.grow(n, 4)
	}
	if len(a.history) == 0 {
		a.user("hello")
	}
	return a
}

func measure(b *testing.B, size int, mode string, plain, ours *child) {
	a := long(b, wire.Anthropic, size)
	start := slices.Clone(a.history)
	action := ""
	ask := func(c *child, body []byte) time.Duration {
		began := time.Now()
		res, err := plainly.RoundTrip(request(b, c.url+paths[a.api], body))
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(began) // to the first byte; the answer is one piece
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.StatusCode != 200 {
			b.Fatal(res.Status)
		}
		action = res.Header.Get("X-Palimpsest-Action")
		return took
	}
	for range 50 {
		ask(plain, a.body())
		ask(ours, a.body())
	}
	want := map[string]string{"pass-through": "passed", "below the mark": "passed", "plan hit": "planned", "compaction": "compacted"}[mode]
	var there, here []time.Duration
	var cpuThere, cpuHere time.Duration // of these requests alone
	sent, other := 0, 0
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		switch {
		case mode == "compaction":
			a.history = anotherTask(start, n)
		case size >= 100<<10:
			if len(a.body()) > size+size/4 { // each step makes it longer, and the figure is for this size
				a.history = anotherTask(start, n)
				ask(plain, a.body())
				ask(ours, a.body())
			}
			a.step(n)
		}
		body := slices.Clone(a.body())
		sent = len(body)
		began := plain.cpu()
		theirs := ask(plain, body)
		usedThere, began := plain.cpu()-began, ours.cpu()
		b.StartTimer()
		took := ask(ours, body)
		b.StopTimer()
		usedHere := ours.cpu() - began
		b.StartTimer()
		if action != want {
			other++ // a step that was too much: compacted in between
			continue
		}
		there, here = append(there, theirs), append(here, took)
		cpuThere, cpuHere = cpuThere+usedThere, cpuHere+usedHere
	}
	if len(here) == 0 {
		b.Fatalf("no request was %s", want)
	}
	n := float64(len(here))
	b.ReportMetric(0, "ns/op")
	slices.Sort(there)
	slices.Sort(here)
	b.ReportMetric(milliseconds(there, 0.5), "plain-p50-ms")
	b.ReportMetric(milliseconds(here, 0.5), "p50-ms")
	b.ReportMetric(milliseconds(there, 0.99), "plain-p99-ms")
	b.ReportMetric(milliseconds(here, 0.99), "p99-ms")
	b.ReportMetric(float64(cpuThere.Microseconds())/1000/n, "plain-cpu-ms")
	b.ReportMetric(float64(cpuHere.Microseconds())/1000/n, "cpu-ms")
	b.ReportMetric(float64(sent)/1024, "KB")
	b.ReportMetric(float64(other), "others")
}

// anotherTask is the same history with another first message: a conversation of its own.
func anotherTask(history []string, n int) []string {
	out := slices.Clone(history)
	out[0] = strings.Replace(out[0], "Read all", fmt.Sprintf("Task %d: read all", n), 1)
	return out
}

// BenchmarkThreads measures what a proxy holds of a thousand conversations at once,
// each of which sends two steps.
func BenchmarkThreads(b *testing.B) {
	const threads, steps = 1000, 2
	for _, size := range []int{100 << 10, 400 << 10} {
		for _, kept := range []string{"memory", "sqlite"} {
			b.Run(fmt.Sprintf("%s/%dKB", kept, size>>10), func(b *testing.B) {
				s := served{Upstream: answering(b), Ours: true, Window: size / 8}
				if kept == "sqlite" {
					s.File = filepath.Join(b.TempDir(), "threads.db")
				}
				c := startChild(b, s)
				a := long(b, wire.Anthropic, size)
				first := a.history[0]
				before := c.heap(b)
				for b.Loop() {
					for step := range steps {
						a.step(step)
						for n := range threads {
							a.history[0] = strings.Replace(first, "Read all", fmt.Sprintf("Task %d: read all", n), 1)
							res, err := plainly.RoundTrip(request(b, c.url+paths[a.api], a.body()))
							if err != nil {
								b.Fatal(err)
							}
							io.Copy(io.Discard, res.Body)
							res.Body.Close()
						}
					}
				}
				b.ReportMetric(float64(c.resident())/(1<<20), "resident-MB")
				b.ReportMetric(float64(c.heap(b)-before)/(1<<20), "heap-MB")
				b.ReportMetric(float64(c.heap(b)-before)/threads/1024, "KB/thread")
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/threads/steps, "ms/request")
			})
		}
	}
}
