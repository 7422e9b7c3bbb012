package proxy_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/internal/test/leak"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func TestMain(m *testing.M) {
	if described := os.Getenv(childEnv); described != "" {
		serveChild(described)
		return
	}
	corpus.CollectLessOften()
	os.Exit(leak.Main(m, plainly.CloseIdleConnections, http.DefaultClient.CloseIdleConnections))
}

func post(t testing.TB, url string, body []byte, header http.Header) *http.Response {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, header)
	res, err := plainly.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	res.Body = io.NopCloser(bytes.NewReader(b))
	return res
}

// TestOtherPaths: everything that asks no model is forwarded as it is, to the
// provider that it is meant for.
func TestOtherPaths(t *testing.T) {
	anthropic, openai, gemini := proxytest.New(t), proxytest.New(t), proxytest.New(t)
	p, err := proxy.New(&proxy.Options{Anthropic: anthropic.URL, OpenAI: openai.URL + "/v1", Gemini: gemini.URL})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p)
	defer server.Close()
	for _, c := range []struct {
		method, path, header string
		to                   *proxytest.Upstream
		arrives              string
	}{
		{"GET", "/v1/models", "", openai, "/v1/models"},
		{"GET", "/v1/models?limit=3", "X-Api-Key", anthropic, "/v1/models?limit=3"},
		{"GET", "/v1beta/models?key=k&pageSize=2", "", gemini, "/v1beta/models?key=k&pageSize=2"},
		{"POST", "//v1///embeddings", "", openai, "/v1/embeddings"},
		{"POST", "/v1/messages/batches?x=%20y&z", "Anthropic-Version", anthropic, "/v1/messages/batches?x=%20y&z"},
		{"POST", "/messages/count_tokens", "", anthropic, "/v1/messages/count_tokens"},
		{"DELETE", "/v1/files/a%2Fb", "", openai, "/v1/files/a%2Fb"},
		{"POST", "/v1/embeddings", "", openai, "/v1/embeddings"},
		{"POST", "/v1/responses/compact", "", openai, "/v1/responses/compact"},
		{"POST", "/responses/input_tokens", "", openai, "/v1/responses/input_tokens"},
		{"POST", "/v1beta/models/gemini-x:countTokens", "", gemini, "/v1beta/models/gemini-x:countTokens"},
		{"POST", "/v1beta/models/gemini-x:embedContent", "", gemini, "/v1beta/models/gemini-x:embedContent"},
	} {
		r, _ := http.NewRequest(c.method, server.URL+c.path, strings.NewReader(`{"model":"m"}`))
		if c.header != "" {
			r.Header.Set(c.header, "secret")
		}
		r.Header.Set("X-Forwarded-For", "10.1.2.3")
		r.Header.Set("Connection", "X-Hop")
		r.Header.Set("X-Hop", "1")
		c.to.Forget()
		res, err := plainly.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		got := c.to.Requests()
		if len(got) != 1 || got[0].Path != c.arrives || got[0].Method != c.method || string(got[0].Body) != `{"model":"m"}` {
			t.Errorf("%s %s arrived as %+v", c.method, c.path, got)
			continue
		}
		if h := got[0].Header; h.Get("X-Forwarded-For") != "10.1.2.3" || h.Get("X-Hop") != "" || c.header != "" && h.Get(c.header) != "secret" {
			t.Errorf("%s %s: headers %v", c.method, c.path, h)
		}
		if res.Header.Get("X-Echo") == "" {
			t.Errorf("%s %s: the answer's headers are lost", c.method, c.path)
		}
	}
}

// TestUpstreams: an address that cannot be used is named.
func TestUpstreams(t *testing.T) {
	for _, address := range []string{"ftp://x", "localhost:80", "http://", "://"} {
		if _, err := proxy.New(&proxy.Options{OpenAI: address}); err == nil || !strings.Contains(err.Error(), address) {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := proxy.New(nil); err != nil {
		t.Error(err)
	}
}

// TestCancellation: a client that goes away takes its request with it.
func TestCancellation(t *testing.T) {
	for _, edited := range []bool{false, true} {
		up := strict(t)
		up.Model = func(*proxytest.Request) proxytest.Answer {
			return proxytest.Answer{Text: "a b c", Hold: make(chan struct{})}
		}
		url, _ := start(t, up, smallWindow())
		a := newAgent(t, wire.Anthropic, url, true)
		n := 2
		if edited {
			n = 24
		}
		a.grow(0, n)
		ctx, cancel := context.WithCancel(context.Background())
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, url+a.path(), bytes.NewReader(a.body()))
		res, err := plainly.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(res.Body, make([]byte, 10)); err != nil {
			t.Fatalf("the first bytes of a stream wait for the rest: %v", err)
		}
		cancel()
		res.Body.Close()
		<-up.Gone
	}
}

// TestResets: an answer that breaks off breaks off for the client, at the same
// byte, and is never passed off as whole.
func TestResets(t *testing.T) {
	for _, edited := range []bool{false, true} {
		for _, stream := range []bool{false, true} {
			for _, at := range []int{1, 60, 300} {
				up := strict(t)
				up.Model = func(*proxytest.Request) proxytest.Answer {
					return proxytest.Answer{Text: strings.Repeat("all is well ", 40), Reset: at}
				}
				url, _ := start(t, up, smallWindow())
				a := newAgent(t, wire.Chat, url, stream)
				n := 2
				if edited {
					n = 24
				}
				a.grow(0, n)
				r, _ := http.NewRequest(http.MethodPost, url+a.path(), bytes.NewReader(a.body()))
				res, err := plainly.RoundTrip(r)
				if err != nil {
					continue // the connection broke before the headers were sent
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err == nil && res.StatusCode == 200 {
					t.Errorf("edited %t, stream %t: %d bytes passed for a whole answer", edited, stream, len(b))
				}
			}
		}
	}
}

// TestLargeBody: a body over the limit streams through untouched.
func TestLargeBody(t *testing.T) {
	up := proxytest.New(t)
	url, p := start(t, up, proxy.Options{MaxBody: 50_000, Window: 10_000})
	a := newAgent(t, wire.Anthropic, url, false)
	a.grow(0, 40)
	want := a.body()
	s := a.peek()
	if s.status != 200 || s.action() != proxy.Passed || s.header.Get(proxy.ReasonHeader) != "too-large" {
		t.Errorf("status %d, %q", s.status, s.action())
	}
	if got := up.Requests(); len(want) < 100_000 || !bytes.Equal(got[0].Body, want) {
		t.Errorf("%d bytes became %d", len(want), len(got[0].Body))
	}
	if p.Totals().Edited != 0 {
		t.Error("it was edited")
	}
}

// packed compresses a body as clients do.
func packed(t testing.TB, encoding string, body []byte) []byte {
	t.Helper()
	var z bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&z)
	if encoding == "zstd" {
		w, _ = zstd.NewWriter(&z)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return z.Bytes()
}

// TestCompressedRequests: gzip and zstd are looked into; what cannot be read passes.
func TestCompressedRequests(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			up := strict(t)
			url, p := start(t, up, smallWindow())
			header := http.Header{"Content-Encoding": {encoding}}
			a := newAgent(t, wire.Chat, url, false)
			a.grow(0, 24)
			res := post(t, url+a.path(), packed(t, encoding, a.body()), header)
			if res.StatusCode != 200 || res.Header.Get(proxy.ActionHeader) != proxy.Compacted {
				t.Errorf("status %d, %q", res.StatusCode, res.Header.Get(proxy.ActionHeader))
			}
			if got := up.Requests()[0]; got.Header.Get("Content-Encoding") != "" || got.Body[0] != '{' {
				t.Errorf("the compacted body is still called %q", got.Header.Get("Content-Encoding"))
			}
			a = newAgent(t, wire.Chat, url, false)
			a.grow(0, 2)
			small := packed(t, encoding, a.body())
			res = post(t, url+a.path(), small, header)
			if got := up.Requests()[1]; res.StatusCode != 200 || got.Header.Get("Content-Encoding") != encoding || !bytes.Equal(got.Body, small) {
				t.Errorf("small and compressed: status %d, the body has another form", res.StatusCode)
			}
			for encoding, unread := range map[string][]byte{
				encoding: append([]byte("no frame of it"), small...),
				"br":     []byte("\x0b\x02\x80hello\x03"),
			} {
				n := len(up.Requests())
				post(t, url+"/v1/chat/completions", unread, http.Header{"Content-Encoding": {encoding}})
				if got := up.Requests()[n]; !bytes.Equal(got.Body, unread) {
					t.Errorf("a body of %s that cannot be read did not pass", encoding)
				}
			}
			if totals := p.Totals(); totals.Faults != 0 {
				t.Errorf("totals: %+v", totals)
			}
		})
	}
}

// TestCompressedOverflow: where the window is not known, a compressed request that
// the provider refuses is made smaller, and the window is that of its model.
func TestCompressedOverflow(t *testing.T) {
	up := strict(t)
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
	a := newAgent(t, wire.Responses, url, false)
	a.grow(0, 34)
	for n, want := range []string{proxy.Recovered, proxy.Planned} {
		res := post(t, url+a.path(), packed(t, "zstd", a.body()), http.Header{"Content-Encoding": {"zstd"}})
		if got := res.Header.Get(proxy.ActionHeader); res.StatusCode != 200 || got != want {
			t.Errorf("request %d: status %d, %q", n, res.StatusCode, got)
		}
	}
	b := newAgent(t, wire.Responses, url, false)
	b.user("Another task.")
	b.grow(1, 34)
	if s := b.peek(); s.action() != proxy.Compacted {
		t.Errorf("the window of the model is not known: %q", s.action())
	}
}

// TestBomb: a small body that becomes a huge one is not unpacked beyond the limit.
func TestBomb(t *testing.T) {
	up := proxytest.New(t)
	url, p := start(t, up, proxy.Options{Window: window, MaxBody: 1 << 20, Config: palimpsest.Config{Counter: counter()}})
	for _, encoding := range []string{"gzip", "zstd"} {
		body := packed(t, encoding, bytes.Repeat([]byte(" "), 16<<20))
		res := post(t, url+"/v1/chat/completions", body, http.Header{"Content-Encoding": {encoding}})
		if got := res.Header.Get(proxy.ReasonHeader); got != "encoding" || p.Totals().Faults != 0 {
			t.Errorf("%s: %q, totals %+v", encoding, got, p.Totals())
		}
	}
}

// TestKeepAlive: connections are used again, also after refusals and streams.
func TestKeepAlive(t *testing.T) {
	up := strict(t)
	url, _ := start(t, up, proxy.Options{Config: palimpsest.Config{Counter: counter()}})
	fresh := 0
	trace := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh++
		}
	}})
	client := &http.Transport{}
	defer client.CloseIdleConnections()
	for n := range 8 {
		a := newAgent(t, wire.Anthropic, url, n%2 == 0)
		a.grow(0, 5*n)
		r, _ := http.NewRequestWithContext(trace, http.MethodPost, url+a.path(), bytes.NewReader(a.body()))
		res, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	// The client may find that a connection is free again only after it has opened the next.
	if fresh > 4 {
		t.Errorf("%d connections for 8 requests one after the other", fresh)
	}
}

// TestTransport: the same exchange in one process, for an http.Client.
func TestTransport(t *testing.T) {
	up := strict(t)
	up.Model = steps(30, false)
	rt, err := proxy.NewTransport(&proxy.Options{Window: window, Config: palimpsest.Config{Counter: counter()}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.CloseIdleConnections()
	for _, api := range apis {
		up.Model = steps(30, false)
		a := newAgent(t, api, up.URL, true)
		a.client = &http.Client{Transport: rt}
		runTask(t, a, 30)
	}
	if totals := rt.Totals(); totals.Compactions < 4 || totals.Faults != 0 || totals.TokensBefore <= totals.TokensSent {
		t.Errorf("totals: %+v", totals)
	}
}

// broken is a request body that ends in an error.
type broken struct{ after io.Reader }

var errBroken = errors.New("the client went away")

func (b broken) Read(p []byte) (int, error) {
	n, err := b.after.Read(p)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

// TestHalfARequest: a request that does not arrive whole goes nowhere.
func TestHalfARequest(t *testing.T) {
	up := proxytest.New(t)
	rt, err := proxy.NewTransport(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodPost, up.URL+"/v1/messages", broken{strings.NewReader(`{"model":"m","messages":[`)})
	res, err := rt.RoundTrip(r)
	if err == nil {
		res.Body.Close()
	}
	if !errors.Is(err, errBroken) || len(up.Requests()) != 0 {
		t.Errorf("%v, %d requests", err, len(up.Requests()))
	}
}

// TestSlowReader: an answer that nobody reads waits, and comes whole.
func TestSlowReader(t *testing.T) {
	up := strict(t)
	long := strings.Repeat("word ", 100_000)
	up.Model = func(*proxytest.Request) proxytest.Answer { return proxytest.Answer{Text: long} }
	url, _ := start(t, up, smallWindow())
	for _, n := range []int{2, 24} {
		a := newAgent(t, wire.Responses, url, true)
		a.grow(0, n)
		r, _ := http.NewRequest(http.MethodPost, url+a.path(), bytes.NewReader(a.body()))
		res, err := plainly.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		small := make([]byte, 333)
		for {
			n, err := res.Body.Read(small)
			b.Write(small[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		res.Body.Close()
		s := said{raw: b.Bytes()}
		a.understand(&s)
		if s.text != long {
			t.Errorf("%d characters in place of %d", len(s.text), len(long))
		}
	}
}

// TestNoWebSocket: a client that would talk to a model past us is sent back to
// HTTP, where no API has a WebSocket that is spoken here, and one that wants a WebSocket for anything else gets through.
func TestNoWebSocket(t *testing.T) {
	up := proxytest.New(t)
	url, _ := start(t, up, proxy.Options{})
	for path, want := range map[string]int{"/v1/chat/completions": http.StatusUpgradeRequired, "/v1/realtime?model=m": http.StatusOK} {
		r, err := http.NewRequest(http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}
		before := len(up.Requests())
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, res.StatusCode, want)
		}
		if asked := len(up.Requests()) > before; asked != (want == http.StatusOK) {
			t.Errorf("%s: the provider was asked: %t", path, asked)
		}
	}
}

// TestUnreachable: an answer in place of the provider's says what is wrong, and not
// where its server stands.
func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }))
	defer closing.Close()
	for upstream, want := range map[string]string{gone.URL: "connection refused", closing.URL: "broke off", "http://no.such.server.invalid": "not known", "https" + closing.URL[4:]: "TLS"} {
		p, err := proxy.New(&proxy.Options{OpenAI: upstream + "/v1"})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(p)
		res := post(t, server.URL+"/v1/chat/completions", []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`), nil)
		said, _ := io.ReadAll(res.Body)
		server.Close()
		_, address, _ := strings.Cut(upstream, "//")
		host, _, _ := strings.Cut(address, ":")
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(said), `"type":"error"`) || !strings.Contains(string(said), want) || strings.Contains(string(said), host) {
			t.Errorf("%s: %d %s", upstream, res.StatusCode, said)
		}
	}
}

// TestNoBody: a request without a body, which no provider's API has, passes.
func TestNoBody(t *testing.T) {
	up := proxytest.New(t)
	url, p := start(t, up, proxy.Options{Window: 20_000})
	for _, path := range []string{"/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/responses/compact", "/v1/messages/count_tokens", "/v1beta/models/m:generateContent"} {
		if res := post(t, url+path, nil, nil); res.StatusCode == http.StatusBadGateway {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	if got := len(up.Requests()); got != 6 || p.Totals().Faults != 0 {
		t.Errorf("%d requests arrived, %+v", got, p.Totals())
	}
}

// TestDeclaredLength: a body that is said to be large and does not come takes no
// memory.
func TestDeclaredLength(t *testing.T) {
	up := proxytest.New(t)
	url, _ := start(t, up, proxy.Options{Window: 20_000})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(t.Context())
	const connections = 20
	sent, wait := make(chan struct{}, connections), sync.WaitGroup{}
	for range connections {
		body, feed := io.Pipe()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 60 << 20
		wait.Go(func() {
			if res, err := plainly.RoundTrip(r); err == nil {
				res.Body.Close()
			}
		})
		wait.Go(func() {
			feed.Write([]byte("{"))
			feed.Write([]byte(strings.Repeat(" ", 32<<10))) // once this has gone the first has been read
			sent <- struct{}{}
			<-ctx.Done()
			feed.CloseWithError(ctx.Err())
		})
	}
	for range connections {
		<-sent
	}
	runtime.ReadMemStats(&after)
	cancel()
	wait.Wait()
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("%d requests that did not come took %d MB", connections, took)
	}
}
