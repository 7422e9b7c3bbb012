// Package proxytest has a provider for tests of proxies: an HTTP server that speaks the four APIs, streams
// as the providers do, and refuses what they refuse. Only tests import it.
package proxytest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/llmtest"
	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
	"github.com/palimpsest-ai/palimpsest/wire/gemini"
	"github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Request is a request that an Upstream received.
type Request struct {
	N      int // counting from 1
	API    string
	Method string
	Path   string // with the query
	Header http.Header
	Body   []byte
	Prompt *prompt.Prompt // nil if it does not ask a model
	Stream bool
	// Tokens is what the upstream counts.
	Tokens int
	// Refused says why the request was refused; empty if it was not.
	Refused string
}

// Answer is the model's answer.
type Answer struct {
	Text, Thinking string
	Calls          []thread.ToolCall
	// Cached are the prompt's tokens that the usage says came from the cache.
	Cached int
	// Cut says that the answer was cut off at the output limit. A stream of Anthropic's then lacks the
	// end of the last call's arguments.
	Cut bool
	// Status and Body answer in place of the model; Stream does as a stream of status 200.
	Status int
	Body   string
	Stream string
	Header http.Header
	// Reset breaks the connection after so many bytes; 0 does not.
	Reset int
	// Hold delays the rest after the first piece, until it is closed or the client leaves.
	Hold <-chan struct{}
}

// Upstream is a provider. It is safe for concurrent use.
type Upstream struct {
	// URL is its address without a path.
	URL string
	// Window is the model's, in tokens as Count counts; 0 takes everything.
	Window int
	Count  func(*prompt.Prompt) int
	// BindThinking refuses a thinking block if anything before it has changed, as the newest Anthropic
	// models do.
	BindThinking bool
	// Chains holds responses, conversations and message threads, which requests continue by
	// previous_response_id, conversation or thread.
	Chains bool
	// NoCompaction refuses everything of the providers' own compaction, as servers do that do not
	// know it.
	NoCompaction bool
	// Refuse says why a body is refused, in addition to all other checks; empty for not at all.
	Refuse func(body []byte) string
	// Model answers; nil answers "ok". It may be called from several goroutines.
	Model func(*Request) Answer
	// Gone gets a value for each client that left during Hold.
	Gone chan struct{}

	http     *httptest.Server
	closed   chan struct{}
	mu       sync.Mutex
	requests []*Request
	chains   chainStore
}

// New starts an upstream, which is closed when the test ends. Set its fields before the first request.
func New(tb testing.TB) *Upstream {
	u := &Upstream{closed: make(chan struct{}), Gone: make(chan struct{}, 100)}
	u.http = httptest.NewServer(u)
	u.URL = u.http.URL
	tb.Cleanup(func() {
		close(u.closed)
		u.http.CloseClientConnections()
		u.http.Close()
	})
	return u
}

// Requests returns the requests so far, in order.
func (u *Upstream) Requests() []*Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

// Forget forgets the requests so far.
func (u *Upstream) Forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.requests = nil
}

var codecs = map[string]wire.Codec{
	wire.Anthropic: anthropic.Codec{}, wire.Chat: openai.Chat{}, wire.Responses: openai.Responses{}, wire.Gemini: gemini.Codec{},
}

func apiOf(path string) string {
	switch {
	case path == "/v1/messages":
		return wire.Anthropic
	case path == "/v1/chat/completions":
		return wire.Chat
	case path == "/v1/responses":
		return wire.Responses
	case strings.HasSuffix(path, "enerateContent"):
		return wire.Gemini
	}
	return ""
}

// ServeHTTP answers a request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	q := &Request{API: apiOf(r.URL.Path), Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
	q.Header.Set("Host", r.Host)
	u.mu.Lock()
	u.requests = append(u.requests, q)
	q.N = len(u.requests)
	u.mu.Unlock()

	if u.NoCompaction && strings.HasSuffix(r.URL.Path, "/responses/compact") {
		http.NotFound(w, r)
		return
	}
	if u.answerCount(w, q) || u.Chains && u.chains.conversations(w, q) {
		return
	}
	if q.API == "" || r.Method != http.MethodPost {
		w.Header().Set("X-Echo", r.Method+" "+r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"echo","bytes":%d}`, len(body))
		return
	}
	plain := body
	switch r.Header.Get("Content-Encoding") {
	case "gzip":
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			plain, _ = io.ReadAll(z)
		}
	case "zstd":
		if z, err := zstd.NewReader(bytes.NewReader(body)); err == nil {
			plain, _ = io.ReadAll(z)
			z.Close()
		}
	}
	status, said := 0, ""
	if u.Chains {
		switch q.API {
		case wire.Responses:
			plain, status, said = u.chains.withHistory(plain)
		case wire.Anthropic:
			plain, status, said = u.chains.withThread(q.Header, plain)
		}
		if status != 0 {
			plain = body
		}
	}
	if status == 0 {
		status, said = u.check(q, plain)
	}
	if status != 0 {
		q.Refused = said
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, said)
		return
	}
	a := Answer{Text: "ok"}
	if u.Model != nil {
		a = u.Model(q)
	}
	if u.Chains && a.Status == 0 && a.Reset == 0 {
		switch q.API {
		case wire.Responses:
			u.chains.keepResponse(fmt.Sprintf("resp_%d", q.N), conversationID(body), plain, answerOf(q, gjson.ParseBytes(plain), a).Items())
		case wire.Anthropic:
			u.chains.keepThread(fmt.Sprintf("msg_%d", q.N), body, plain, wiretest.Body(q.API, answerOf(q, gjson.ParseBytes(plain), a)))
		}
	}
	u.write(w, r, q, gjson.ParseBytes(plain), a)
}

// check returns the status and body of a refusal; 0 if a provider would take the request.
func (u *Upstream) check(q *Request, body []byte) (status int, said string) {
	codec := codecs[q.API]
	v := gjson.ParseBytes(body)
	q.Stream = v.Get("stream").Bool() || strings.Contains(q.Path, ":streamGenerateContent")
	for _, p := range codec.Validate(body) {
		if !p.Advice {
			return http.StatusBadRequest, refusal(q.API, p.Error())
		}
	}
	if u.NoCompaction {
		if what := compaction(q, v); what != "" {
			return http.StatusBadRequest, refusal(q.API, what+": Extra inputs are not permitted")
		}
	}
	if u.Refuse != nil {
		if why := u.Refuse(body); why != "" {
			return http.StatusBadRequest, refusal(q.API, why)
		}
	}
	p, err := codec.Decode(string(body))
	if err != nil {
		return http.StatusBadRequest, refusal(q.API, err.Error())
	}
	q.Prompt = p
	if u.Count != nil {
		q.Tokens = u.Count(p)
	}
	if u.Window > 0 && q.Tokens > u.Window {
		api := q.API
		if api == wire.Responses {
			api = wire.Chat // whose refusal names the window
		}
		return http.StatusBadRequest, llmtest.Overflow(api, q.Tokens, u.Window).Body
	}
	if u.BindThinking && q.API == wire.Anthropic {
		if at := llmtest.ForeignThinking(v.Raw); at != "" {
			return http.StatusBadRequest, refusal(q.API, at+": `thinking` blocks are bound to a different conversation")
		}
	}
	return 0, ""
}

func refusal(api, message string) string {
	return llmtest.Fault(api, http.StatusBadRequest, "", message).Body
}

// cutArguments drops the last piece of a call's arguments in Anthropic's API.
func cutArguments(events []string) []string {
	for n := range slices.Backward(events) {
		if strings.Contains(events[n], `"input_json_delta"`) {
			return slices.Delete(events, n, n+1)
		}
	}
	return events
}

func (u *Upstream) write(w http.ResponseWriter, r *http.Request, q *Request, body gjson.Result, a Answer) {
	for name, values := range a.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	var pieces []string
	switch {
	case a.Status >= 300 || a.Body != "":
		pieces = []string{a.Body}
	case a.Stream != "":
		pieces = []string{a.Stream}
	case q.Stream:
		pieces = wiretest.Events(q.API, wiretest.Body(q.API, answerOf(q, body, a)), &wiretest.StreamOptions{NoUsage: !body.Get("stream_options.include_usage").Bool()})
		if a.Cut {
			pieces = cutArguments(pieces)
		}
	default:
		pieces = []string{wiretest.Body(q.API, answerOf(q, body, a))}
	}
	kind := "application/json"
	if q.Stream && a.Status < 300 {
		kind = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Request-Id", fmt.Sprintf("req_%d", q.N))
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	sent := 0
	for n, piece := range pieces {
		if a.Reset > 0 && sent+len(piece) >= a.Reset {
			io.WriteString(w, piece[:a.Reset-sent])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		sent += len(piece)
		io.WriteString(w, piece)
		w.(http.Flusher).Flush()
		if n == 0 && a.Hold != nil {
			select {
			case <-a.Hold:
			case <-r.Context().Done():
				u.Gone <- struct{}{}
				return
			case <-u.closed:
				return
			}
		}
	}
}
