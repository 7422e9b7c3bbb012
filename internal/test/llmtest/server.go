package llmtest

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/test/wiretest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
	wireanthropic "github.com/palimpsest-ai/palimpsest/wire/anthropic"
	wireopenai "github.com/palimpsest-ai/palimpsest/wire/openai"
)

// Answer is what a Server answers to one request. The zero value is an empty
// text.
type Answer struct {
	// Text, Reasoning and Calls are the content. Where the request forces a
	// tool, Text is the argument of its call.
	Text, Reasoning string
	Calls           []thread.ToolCall
	// Stop is why the model stopped; empty stands for StopTool with calls, else
	// StopEnd.
	Stop wire.Stop
	// Usage is sent when it is Known.
	Usage wire.Usage
	// RequestID is sent in the header; empty stands for "req_N", N counting from
	// 1. NoRequestID sends none.
	RequestID   string
	NoRequestID bool

	// Status is the HTTP status; 0 stands for 200. From 300 on, Body is the
	// answer.
	Status int
	Header http.Header
	// Body is sent in place of what the content would give, with the content
	// type that the request asks for.
	Body string
	// Events cuts a stream after so many events, and an answer in one piece
	// after so many bytes; 0 sends all. Abort breaks the connection there, where
	// the answer would else end as if nothing were missing.
	Events int
	Abort  bool
	// Hang waits after that for the client to go away.
	Hang bool
	// Hold waits before the first byte until it is closed or the client is gone.
	Hold <-chan struct{}
	// Unknown adds fields, blocks of streams and events that the API may grow.
	Unknown bool

	// serial makes the ids of a provider's answers differ; seal is the signature
	// of the reasoning, or what stands for it encrypted.
	serial, seal string
}

// modelAnswer is the answer to a request.
func (a *Answer) modelAnswer(api string, req gjson.Result) *wiretest.ModelAnswer {
	s := &wiretest.ModelAnswer{
		Serial: cmp.Or(a.serial, "1"), Model: req.Get("model").Str, Reasoning: a.Reasoning, Seal: a.seal, Text: a.Text, Calls: a.Calls,
		Stop: a.stop(), Usage: a.Usage, Unknown: a.Unknown,
	}
	if api == wire.Anthropic {
		s.Seal = cmp.Or(a.seal, "c2VhbA==")
		if name := req.Get("tool_choice.name").Str; name != "" && a.Text != "" && s.Stop == wire.StopEnd {
			s.Calls = []thread.ToolCall{{ID: "toolu_forced", Name: name, Arguments: a.Text}}
			s.Text, s.Stop = "", wire.StopTool
		}
	}
	return s
}

// Request is what a Server got.
type Request struct {
	API    string // wire.Anthropic, wire.Chat or wire.Responses
	Header http.Header
	Body   string
	Prompt *prompt.Prompt // nil where the body cannot be read
	// Tokens is what a provider counted; 0 for a server of NewServer.
	Tokens int
}

// Server answers at /v1/messages, /v1/chat/completions and /v1/responses, over
// real connections. It checks every request with the strict validators and fails the
// test where they find a problem. It is safe for concurrent use.
type Server struct {
	// URL is the address without a path.
	URL string

	tb     testing.TB
	http   *httptest.Server
	closed chan struct{}
	got    chan struct{}
	gone   chan struct{}

	mu       sync.Mutex
	script   []Answer
	requests []Request
	provider *provider // nil for a server with a script
	refused  []Refusal
}

// NewServer starts a server that gives the answers in order and is closed when
// the test ends. Beyond the last answer it fails the test.
func NewServer(tb testing.TB, script ...Answer) *Server {
	s := newServer(tb)
	s.script = script
	s.start()
	return s
}

func newServer(tb testing.TB) *Server {
	return &Server{tb: tb, closed: make(chan struct{}), got: make(chan struct{}, 100), gone: make(chan struct{}, 100)}
}

func (s *Server) start() {
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL
	s.tb.Cleanup(s.close)
}

func (s *Server) close() {
	close(s.closed)
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests returns what was received so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Received gets a value with each request, before it is answered. Both channels hold
// a hundred.
func (s *Server) Received() <-chan struct{} { return s.got }

// ClientGone gets a value each time that a client went away while the server hung.
func (s *Server) ClientGone() <-chan struct{} { return s.gone }

// codecs are the APIs, by path.
var codecs = map[string]wire.Codec{
	"/v1/messages":         wireanthropic.Codec{},
	"/v1/chat/completions": wireopenai.Chat{},
	"/v1/responses":        wireopenai.Responses{},
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	codec := codecs[r.URL.Path]
	if codec == nil || r.Method != http.MethodPost {
		s.tb.Errorf("request to %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	q := Request{API: codec.API(), Header: r.Header.Clone(), Body: string(body)}
	var a Answer
	var n int
	if s.provider != nil {
		a, n = s.provide(codec, q)
	} else {
		a, n = s.next(codec, q)
	}
	signal(s.got)
	if a.Hold != nil {
		select {
		case <-a.Hold:
		case <-r.Context().Done():
			return
		case <-s.closed:
			return
		}
	}
	for name, values := range a.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if !a.NoRequestID {
		id := a.RequestID
		if id == "" {
			id = "req_" + strconv.Itoa(n)
		}
		name := "X-Request-Id"
		if codec.API() == wire.Anthropic {
			name = "Request-Id"
		}
		w.Header().Set(name, id)
	}
	s.answer(w, r, a, codec.API(), gjson.ParseBytes(body))
}

// next checks the request and gives the next answer of the script.
func (s *Server) next(codec wire.Codec, r Request) (Answer, int) {
	for _, p := range codec.Validate([]byte(r.Body)) {
		if !p.Advice {
			s.tb.Errorf("invalid request: %v in %s", p, r.Body)
		}
	}
	var err error
	if r.Prompt, err = codec.Decode(r.Body); err != nil {
		s.tb.Errorf("request: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	n := len(s.requests)
	if n > len(s.script) {
		s.tb.Errorf("request %d, but the script has %d answers", n, len(s.script))
		return Answer{Status: http.StatusTeapot}, n
	}
	return s.script[n-1], n
}

// provide refuses the request or has it answered.
func (s *Server) provide(codec wire.Codec, r Request) (Answer, int) {
	body := gjson.Parse(r.Body)
	s.mu.Lock()
	a, refused := s.provider.checkRequest(codec, &r, body)
	var err error
	if r.Prompt, err = codec.Decode(r.Body); err != nil && !refused {
		a, refused = Fault(r.API, http.StatusBadRequest, "", err.Error()), true
	}
	s.requests = append(s.requests, r)
	n := len(s.requests)
	if refused {
		s.refused = append(s.refused, Refusal{r, a.Status, gjson.Get(a.Body, "error.message").Str})
	}
	s.mu.Unlock()
	if refused {
		return a, n
	}
	a = s.provider.Reply(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider.finish(&a, &r, body, n)
	return a, n
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, a Answer, api string, req gjson.Result) {
	stream := req.Get("stream").Bool()
	var pieces []string
	switch {
	case a.Status >= 300 || a.Body != "":
		pieces = []string{a.Body}
		if a.Events > 0 {
			pieces = []string{a.Body[:min(a.Events, len(a.Body))]}
		}
	default:
		body := wiretest.Body(api, a.modelAnswer(api, req))
		if pieces = []string{body[:min(cmp.Or(a.Events, len(body)), len(body))]}; stream {
			pieces = wiretest.Events(api, body, &wiretest.StreamOptions{NoUsage: !req.Get("stream_options.include_usage").Bool(), Unknown: a.Unknown})
		}
	}
	if stream && a.Body == "" && a.Events > 0 {
		pieces = pieces[:min(a.Events, len(pieces))]
	}
	w.Header().Set("Content-Type", "application/json")
	if stream && a.Status < 300 {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	for _, p := range pieces {
		io.WriteString(w, p)
		w.(http.Flusher).Flush()
	}
	if a.Hang {
		select {
		case <-r.Context().Done():
			signal(s.gone)
		case <-s.closed:
		}
	}
	if a.Abort {
		panic(http.ErrAbortHandler)
	}
}

// signal does not wait: nobody need listen.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (a *Answer) stop() wire.Stop {
	switch {
	case a.Stop != "":
		return a.Stop
	case len(a.Calls) > 0:
		return wire.StopTool
	}
	return wire.StopEnd
}
