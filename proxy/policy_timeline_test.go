package proxy_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestTimelineHidesWhatIsOld: behind the proxy, where no client tells a time, nothing is
// hidden while the provider's cache is warm, and after a pause that it does not outlive
// the results that were answered to are, all at once; the request after that has the
// same prefix. C12, F5
func TestTimelineHidesWhatIsOld(t *testing.T) {
	const hidden = "older than the cache"
	var passed atomic.Int64
	now := func() time.Time {
		return time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC).Add(time.Duration(passed.Load()))
	}
	up := proxytest.New(t)
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Calls: []thread.ToolCall{{ID: fmt.Sprintf("call_%04d", q.N), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"part_%03d.go"}`, q.N)}}}
	}
	url, served := start(t, up, proxy.Options{Window: 200_000, NoTools: true, Config: palimpsest.Config{Counter: counter(), Policy: policy.Timeline{}, Now: now}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.model = "claude-sonnet-4-5"
	a.user("Read all parts in order. Never change a file.")
	step := func() string {
		t.Helper()
		s := a.ask()
		if s.status != 200 {
			t.Fatalf("status %d: %s", s.status, s.raw)
		}
		a.results(s.calls, func(thread.ToolCall) string { return result(len(up.Requests())) })
		passed.Add(int64(time.Second))
		sent := up.Requests()
		return string(sent[len(sent)-1].Body)
	}
	const warm = 8
	for n := range warm {
		if body := step(); strings.Contains(body, hidden) {
			t.Fatalf("step %d: something is hidden while the cache is warm", n)
		}
	}
	passed.Add(int64(6 * time.Minute)) // the model's provider keeps a prompt for five
	cold := step()
	// The newest result is not answered to yet, and the first request was too small to be looked at.
	if got := strings.Count(cold, hidden); got < warm-2 || !strings.Contains(cold, "Never change a file.") {
		t.Errorf("after the pause %d results are hidden, want %d", got, warm-1)
	}
	next := step()
	prefixes(t, up.Requests(), 1)
	if strings.Count(next, hidden) != strings.Count(cold, hidden) || served.Totals().Compactions != 1 || served.Totals().Faults != 0 {
		t.Errorf("more is hidden with a warm cache: %+v", served.Totals())
	}
}

// TestTimelineRetriesHarder: a provider that refuses the smaller request too gets a
// smaller one still each time that the client asks again, until it takes one; the
// newest words and the task stand in it. C2
func TestTimelineRetriesHarder(t *testing.T) {
	up := strict(t)
	up.Window = 0
	up.Model = func(q *proxytest.Request) proxytest.Answer {
		if q.Tokens <= 1_500 { // nobody says so
			return proxytest.Answer{Text: "well"}
		}
		q.Refused = "too long"
		return proxytest.Answer{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`}
	}
	url, served := start(t, up, proxy.Options{Window: 60_000, NoTools: true, Config: palimpsest.Config{Counter: counter(), Policy: policy.Timeline{MaxTokens: 60_000}}})
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 16)
	a.user("And now the last one, please.")
	tries := 0
	var s said
	for ; tries < 12; tries++ {
		var err error
		if s, err = a.try(); err != nil {
			t.Fatal(err)
		}
		if s.status == 200 {
			break
		}
		if !strings.Contains(string(s.raw), "prompt is too long") {
			t.Fatalf("status %d: %s", s.status, s.raw)
		}
	}
	sent := up.Requests()
	if s.status != 200 || s.header.Get(proxy.ActionHeader) != proxy.Recovered || tries == 0 || served.Totals().Recovered != 1 {
		t.Fatalf("status %d after %d tries, %q; %+v", s.status, tries+1, s.header.Get(proxy.ActionHeader), served.Totals())
	}
	smallest := 1 << 30
	for n, q := range sent {
		if n%2 == 1 {
			if len(q.Body) >= smallest {
				t.Errorf("request %d has %d bytes, one before it %d", n+1, len(q.Body), smallest)
			}
			smallest = len(q.Body)
		}
	}
	body := string(sent[len(sent)-1].Body)
	for _, want := range []string{"conv.range.summary", "Never change a file.", "And now the last one, please."} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %.1500s", want, body)
		}
	}
}
