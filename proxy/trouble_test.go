package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/test/proxytest"
	"github.com/palimpsest-ai/palimpsest/proxy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// TestTrouble: a provider that fails now and then, once in the middle of an
// answer, and a client that tries again as clients do. The task ends, nothing is
// refused, and the prefix holds all the same.
func TestTrouble(t *testing.T) {
	for _, api := range apis {
		for _, stream := range streams(t, api) {
			t.Run(fmt.Sprintf("%s, stream %t", api, stream), func(t *testing.T) {
				t.Parallel()
				up := strict(t)
				work := &curious{t: t, inner: steps(60, true), think: true}
				up.Model = func(q *proxytest.Request) proxytest.Answer {
					switch q.N {
					case 12, 27:
						return proxytest.Answer{Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"wait"}}`}
					case 20, 41:
						return proxytest.Answer{Status: 500, Body: `{"type":"error","error":{"type":"api_error","message":"oops"}}`}
					case 33:
						return proxytest.Answer{Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}
					case 37, 45:
						return proxytest.Answer{Text: "This will never be heard of by anybody at all.", Reset: 200}
					}
					return work.answer(q)
				}
				url, p := start(t, up, smallWindow())
				a := newAgent(t, api, url, stream)
				a.think = api == wire.Anthropic
				a.user("Read all parts in order and tell me when you are done.")
				done, tries := 0, 0
				for {
					s := a.persist(&tries)
					if len(s.calls) == 0 {
						break
					}
					a.results(s.calls, func(thread.ToolCall) string { done++; return result(done - 1) })
				}
				for _, q := range up.Requests() {
					if q.Refused != "" {
						t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
					}
				}
				totals := p.Totals()
				if tries < 5 || totals.Faults != 0 || totals.Compactions < 2 {
					t.Errorf("%d failures, totals %+v", tries, totals)
				}
			})
		}
	}
}

// persist asks until there is an answer.
func (a *agent) persist(failures *int) said {
	a.t.Helper()
	for range 5 {
		s, err := a.try()
		if err == nil && s.status == 200 && !bytes.Contains(s.raw, []byte(`"error":{`)) {
			a.take(s)
			return s
		}
		*failures++
	}
	a.t.Fatal("five failures in a row")
	return said{}
}

// TestParallel: requests of one conversation at the same time, as clients that
// hedge or that are impatient send them, are all answered.
func TestParallel(t *testing.T) {
	up := strict(t)
	url, p := start(t, up, smallWindow())
	a := newAgent(t, wire.Anthropic, url, false)
	for n := 0; n < 40; n += 4 {
		a.grow(n, 4)
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				if s, err := a.try(); err != nil || s.status != 200 {
					t.Errorf("status %d, %v: %.200s", s.status, err, s.raw)
				}
			})
		}
		wg.Wait()
	}
	if totals := p.Totals(); totals.Faults != 0 || totals.Requests != 60 {
		t.Errorf("totals: %+v", totals)
	}
	for _, q := range up.Requests() {
		if q.Refused != "" {
			t.Errorf("request %d was refused: %.300s", q.N, q.Refused)
		}
	}
}

// TestCompressedAnswers: an answer that comes compressed is read for calls of our
// tools, whole and as a stream.
func TestCompressedAnswers(t *testing.T) {
	for _, c := range []struct {
		stream   bool
		encoding string
	}{{false, "gzip"}, {true, "gzip"}, {true, "zstd"}} { // zstd is not asked for, and read all the same
		stream := c.stream
		up := strict(t)
		work := &curious{t: t, inner: steps(40, false)}
		up.Model = work.answer
		squeeze := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Errorf("accepted are %q", r.Header.Get("Accept-Encoding"))
			}
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			rec := httptest.NewRecorder()
			up.ServeHTTP(rec, r)
			encoding := "gzip"
			if bytes.Contains(body, []byte(`"`+recall.RecallTool+`"`)) {
				encoding = c.encoding
			}
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.Header().Set("Content-Encoding", encoding)
			w.WriteHeader(rec.Code)
			w.Write(packed(t, encoding, rec.Body.Bytes()))
		}))
		p, err := proxy.New(&proxy.Options{Anthropic: squeeze.URL, Window: window, Config: palimpsest.Config{Counter: counter()}})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(p)
		a := newAgent(t, wire.Anthropic, server.URL, stream)
		a.header.Set("Accept-Encoding", "gzip")
		a.client = &http.Client{Transport: unzipping{}}
		runTask(t, a, 40)
		if work.found < 3 || work.found < work.asked-1 {
			t.Errorf("stream %t: asked %d times, found %d times", stream, work.asked, work.found)
		}
		server.Close()
		squeeze.Close()
	}
}

// unzipping reads compressed answers, as the caller asked for them itself.
type unzipping struct{}

func (unzipping) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := plainly.RoundTrip(r)
	if err != nil || res.Header.Get("Content-Encoding") != "gzip" {
		return res, err
	}
	z, err := gzip.NewReader(res.Body)
	if err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{z, res.Body}
	return res, nil
}
