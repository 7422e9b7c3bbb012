package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/event/slogsink"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// reports are the events of a proxy, and what a log says of them.
type reports struct {
	proxied chan event.Event // of requests

	mu  sync.Mutex
	all []event.Event
	log strings.Builder
}

func newReports() *reports { return &reports{proxied: make(chan event.Event, 100)} }

// Emit implements event.Sink.
func (l *reports) Emit(ctx context.Context, e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slogsink.New(slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))).Emit(ctx, e)
	if l.all = append(l.all, e); e.Type == event.RequestProxied {
		l.proxied <- e
	}
}

// of are the events of a type so far.
func (l *reports) of(kind event.Type) []event.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(e event.Event) bool { return e.Type != kind })
}

// failures are the failures so far: their class and place.
func (l *reports) failures() (all []string) {
	for _, e := range l.of(event.Failed) {
		all = append(all, fmt.Sprint(e.Err, " ", e.Details["where"]))
	}
	return all
}

// text is the log so far.
func (l *reports) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

// next is the event of the next request whose answer has ended, in short.
func (l *reports) next() (e event.Event, short string) {
	e = <-l.proxied
	short = fmt.Sprint(e.Details["route"], " ", e.Details["action"])
	for _, v := range []any{e.Details["reason"], e.Details["status"]} {
		if v != nil {
			short += fmt.Sprint(" ", v)
		}
	}
	return e, strings.TrimSpace(short + " " + e.Err)
}

// TestRequestsAreTold: each request is told of once, when its answer has ended, with what the
// headers of the answer say.
func TestRequestsAreTold(t *testing.T) {
	for _, api := range apis {
		up, l := strict(t), newReports()
		o := smallWindow()
		o.Config.Events = l
		o.Config.Requester.TenantID = "acme"
		url, _ := start(t, up, o)
		a := newAgent(t, api, url, api == wire.Responses)
		want := func(what string, s said) {
			t.Helper()
			e, got := l.next()
			if got != api+" "+what {
				t.Errorf("%s: told of %q, want %q", api, got, what)
			}
			tokens := func(n int) string { return strings.TrimPrefix(fmt.Sprint(n), "0") }
			if h := s.header; e.ThreadID != h.Get(proxy.ThreadHeader) || tokens(e.TokensBefore) != h.Get(proxy.BeforeHeader) || tokens(e.TokensAfter) != h.Get(proxy.SentHeader) || e.TenantID != "acme" || e.Duration <= 0 {
				t.Errorf("%s: %s: %+v, the answer says %v", api, what, e, h)
			}
		}
		a.grow(0, 1)
		want("passed below-mark 200", a.peek())
		a.grow(1, 24)
		want("compacted 200", a.peek())
		a.grow(25, 1)
		want("planned 200", a.peek())
		up.Refuse = func([]byte) string { return "max_tokens: required" }
		s, err := a.try()
		if err != nil {
			t.Fatal(err)
		}
		want("passed refused 400 provider", s)
		if all := l.failures(); len(all) > 0 {
			t.Errorf("%s: failures %v", api, all)
		}
	}
}

// TestOtherRequestsAreTold: so is what asks no model, or does not come as a request of its own.
func TestOtherRequestsAreTold(t *testing.T) {
	up, l := strict(t), newReports()
	o := smallWindow()
	o.Config.Events = l
	o.MaxBody = 20_000
	url, _ := start(t, up, o)
	want := func(what string) {
		t.Helper()
		if _, got := l.next(); got != what {
			t.Errorf("told of %q, want %q", got, what)
		}
	}
	post(t, url+"/v1/messages/count_tokens", []byte(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`), nil)
	want("anthropic/count passed count 200")
	post(t, url+"/v1/files", []byte(`{}`), nil)
	want("other passed 200")
	a := newAgent(t, wire.Anthropic, url, false)
	a.user(strings.Repeat("long ", 5_000))
	a.ask()
	want("anthropic passed too-large 200")
	upgrade := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
	post(t, url+"/v1/messages", nil, upgrade)
	want("anthropic passed websocket 426")

	c := newSocketed(t, url)
	c.user("Read all parts.")
	c.ask()
	want("responses passed below-mark 200")
}

// TestClientLeaves: a client that does not wait for the end is no trouble of the provider's.
func TestClientLeaves(t *testing.T) {
	up, l := strict(t), newReports()
	hold := make(chan struct{})
	defer close(hold)
	up.Model = func(*proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Text: "This is a long answer of many words.", Hold: hold}
	}
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Events: l}})
	a := newAgent(t, wire.Anthropic, url, true)
	a.user("Talk.")
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+a.path(), strings.NewReader(string(a.body())))
	if err != nil {
		t.Fatal(err)
	}
	res, err := plainly.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	if _, got := l.next(); got != "anthropic passed below-mark 200 canceled" {
		t.Errorf("told of %q", got)
	}
	if strings.Contains(l.text(), "level=WARN") {
		t.Errorf("a warning:\n%s", l.text())
	}
}

// TestProviderDown: the log says why a provider gave no answer, and that it is the provider's; so
// does it of an answer that breaks off. Nothing of that is a failure of ours.
func TestProviderDown(t *testing.T) {
	up, l := strict(t), newReports()
	up.Model = func(*proxytest.Request) proxytest.Answer {
		return proxytest.Answer{Text: "This will never be heard of by anybody at all.", Reset: 200}
	}
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Events: l}})
	a := newAgent(t, wire.Anthropic, url, true)
	a.user("Talk.")
	if _, err := a.try(); err == nil {
		t.Fatal("the answer does not break off")
	}
	if _, got := l.next(); got != "anthropic passed below-mark 200 provider" {
		t.Errorf("told of %q", got)
	}

	gone := httptest.NewServer(nil)
	gone.Close()
	o := smallWindow()
	o.Config.Events, o.Anthropic = l, gone.URL
	p, err := proxy.New(&o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	a = newAgent(t, wire.Anthropic, server.URL, false)
	a.grow(0, 24)
	s, err := a.try()
	if err != nil {
		t.Fatal(err)
	}
	e, got := l.next()
	if got != "anthropic compacted no-answer provider" || s.status != http.StatusBadGateway || s.action() != proxy.Compacted || s.header.Get(proxy.ReasonHeader) != "no-answer" || s.header.Get(proxy.ThreadHeader) != e.ThreadID {
		t.Errorf("told of %q; status %d, %v", got, s.status, s.header)
	}
	if got := p.Totals(); got.Requests != 1 || got.Unanswered != 1 {
		t.Errorf("totals %+v", got)
	}
	if text := l.text(); !strings.Contains(text, "level=WARN msg=request_proxied thread_id="+e.ThreadID) || !strings.Contains(text, "error_class=provider") || !strings.Contains(text, "connection refused") {
		t.Errorf("the log:\n%s", text)
	}
	if all := l.failures(); len(all) > 0 || p.Totals().Faults != 0 {
		t.Errorf("failures %v, totals %+v", all, p.Totals())
	}
}

// TestNotRecovered: a smaller request that the provider refuses as well is not recovered, in the
// answer, the event and the totals.
func TestNotRecovered(t *testing.T) {
	for _, api := range half(t) {
		up, l := strict(t), newReports()
		up.Window = 0
		up.Model = func(*proxytest.Request) proxytest.Answer {
			return proxytest.Answer{Status: 413, Body: `{"type":"error","error":{"type":"request_too_large","message":"CANARY is too long"}}`}
		}
		url, p := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter(), Events: l}})
		a := newAgent(t, api, url, false)
		a.grow(0, 35)
		s, err := a.try()
		if err != nil {
			t.Fatal(err)
		}
		e, got := l.next()
		if got != api+" compacted refused 413 provider" || s.action() != proxy.Compacted || s.header.Get(proxy.ReasonHeader) != "refused" || len(up.Requests()) != 2 {
			t.Errorf("%s: told of %q after %d requests, the answer says %v", api, got, len(up.Requests()), s.header)
		}
		if text := l.text(); event.CauseText(e.Cause) != "context overflow (status 413)" || strings.Contains(text, "recovered") || strings.Contains(text, "CANARY") {
			t.Errorf("%s: %v; the log:\n%s", api, e.Cause, text)
		}
		if totals := p.Totals(); totals.Recovered != 0 || totals.Faults != 0 {
			t.Errorf("%s: %+v", api, totals)
		}
	}
}

// breaking answers the first request and breaks the connection of all others.
type breaking struct {
	http.RoundTripper
	asked atomic.Int64
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.asked.Add(1) > 1 {
		return nil, &timedOut{}
	}
	return b.RoundTripper.RoundTrip(r)
}

type timedOut struct{}

func (*timedOut) Error() string   { return "no answer in time" }
func (*timedOut) Timeout() bool   { return true }
func (*timedOut) Temporary() bool { return true }

// TestNoAnswerToSmaller: a smaller request that is not answered is not recovered either; a client in
// the same process sees that it took too long.
func TestNoAnswerToSmaller(t *testing.T) {
	up, l := strict(t), newReports()
	o := proxy.Options{Base: &breaking{RoundTripper: plainly}, Config: palimpsest.Config{Counter: counter(), Events: l}}
	url, _ := start(t, up, o)
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 35)
	s, err := a.try()
	if err != nil {
		t.Fatal(err)
	}
	if _, got := l.next(); got != "anthropic compacted no-answer provider" || s.status != http.StatusBadGateway || s.action() != proxy.Compacted {
		t.Errorf("told of %q; status %d, %v", got, s.status, s.header)
	}
	transport, err := proxy.NewTransport(&proxy.Options{Base: &breaking{RoundTripper: plainly}, Config: palimpsest.Config{Events: l}})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	for range 2 {
		res, err := client.Post(up.URL+"/v1/files", "application/json", strings.NewReader("{}"))
		if err == nil {
			res.Body.Close()
		} else if timed, ok := errors.AsType[net.Error](err); !ok || !timed.Timeout() {
			t.Errorf("%v does not say that it took too long", err)
		}
		l.next()
	}
}

// TestWhoseFault: the class of a failure says whose it is, and the log why, without anything that
// was said or a key.
func TestWhoseFault(t *testing.T) {
	full, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "p.db"), &sqlite.Options{TenantBytes: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { full.Close() })
	ask := func(c palimpsest.Config, times int) (l *reports, p *proxy.Proxy, last said) {
		t.Helper()
		up := strict(t)
		up.Window = 0
		l = newReports()
		c.Counter, c.Events = counter(), l
		url, p := start(t, up, proxy.Options{Window: window, Config: c})
		a := newAgent(t, wire.Anthropic, url, false)
		a.header.Set("X-Api-Key", "sk-secret")
		a.grow(0, 24)
		for n := range times {
			a.grow(24+n, 1)
			last = a.peek()
			l.next()
		}
		if text := l.text(); strings.Contains(text, "sk-secret") || strings.Contains(text, "Never change a file") {
			t.Errorf("content or a key in the log:\n%s", text)
		}
		return l, p, last
	}
	kept := full.Tenant("acme")
	l, p, s := ask(palimpsest.Config{Store: store.Tenant{Log: kept.Log, Plans: kept.Plans}}, 2)
	if all := l.failures(); !slices.Equal(all, []string{"storage <nil>", "storage proxy_prepare"}) || p.Totals().Faults != 2 {
		t.Errorf("a full store: failures %v, totals %+v", all, p.Totals())
	}
	if s.header.Get(proxy.ReasonHeader) != "fault" || s.header.Get(proxy.ThreadHeader) == "" {
		t.Errorf("a full store: %v", s.header)
	}
	if text := l.text(); strings.Count(text, "the tenant has used up its quota") != 2 || !strings.Contains(text, "details.reason=compaction-failed") {
		t.Errorf("a full store:\n%s", text)
	}

	f := &faulty{at: "current", harm: func(context.Context) error { panic("CANARY") }}
	l, _, _ = ask(palimpsest.Config{Store: store.Tenant{Log: f, Plans: f}}, 1)
	if all, text := l.failures(), l.text(); !slices.Equal(all, []string{"panic proxy_prepare"}) || strings.Contains(text, "CANARY") || !strings.Contains(text, "panic at report_test.go:") {
		t.Errorf("a panic: failures %v\n%s", all, text)
	}

	f = &faulty{at: "current", harm: func(context.Context) error { return errors.New("our own") }}
	l, _, _ = ask(palimpsest.Config{Store: store.Tenant{Log: f, Plans: f}}, 1)
	if all := l.failures(); !slices.Equal(all, []string{"internal proxy_prepare"}) || !strings.Contains(l.text(), "our own") {
		t.Errorf("an error of ours: failures %v\n%s", all, l.text())
	}
}
