package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// lastEvent keeps the beginning of the last event of a stream while it passes: a provider that fails
// on the way says so there, under status 200. It does not change and does not hold up the stream. It
// is not safe for concurrent use.
type lastEvent struct {
	event   []byte // the last one that is whole
	current []byte // the one that is coming
	line    int    // bytes of its current line
}

func (l *lastEvent) add(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		l.line += len(bytes.TrimSuffix(line, []byte("\r")))
		l.current = append(l.current, line[:min(len(line), max(0, maxEventHead-len(l.current)))]...)
		if ended && l.line == 0 {
			l.endEvent()
		} else if ended && len(l.current) < maxEventHead {
			l.current = append(l.current, '\n')
		}
		if ended {
			l.line = 0
		}
		p = rest
	}
}

// maxEventHead is how much of an event is kept, in bytes: the error of a failed response stands
// before what repeats its request.
const maxEventHead = 4 << 10

// endEvent keeps the current event, unless it says nothing.
func (l *lastEvent) endEvent() {
	if said := bytes.TrimSpace(l.current); len(said) > 0 && !bytes.HasSuffix(said, []byte("[DONE]")) {
		l.event, l.current = l.current, l.event
	}
	l.current = l.current[:0]
}

// failure is the error that the stream ended with; nil for none. api is the API of the stream.
func (l *lastEvent) failure(api string) error {
	l.endEvent()
	e, _ := sse.NewReader(bytes.NewReader(l.event), 0).Next()
	if !isError(e) {
		return nil
	}
	body := e.Data
	for _, path := range []string{"error", "response.error"} {
		if said := gjson.Get(e.Data, path); said.IsObject() { // the event may be cut off behind it
			body = `{"error":` + said.Raw + `}`
		}
	}
	return &llm.APIError{Kind: cmp.Or(llm.Classify(api, 0, []byte(body)), llm.ErrServer)}
}

// This file says what is told of each request: one event, when its answer has ended.

// The sides of a connectionError.
const (
	clientSide   = "client"
	providerSide = "provider"
)

// connectionError is the error of a connection to a client or a provider.
type connectionError struct {
	error
	side string
	sent decision // what the provider was sent and did not answer, once that is known
}

func (e *connectionError) Unwrap() error { return e.error }

// Class is the side (see event.ErrorClass).
func (e *connectionError) Class() string { return e.side }

// Timeout is for url.Error, which looks at the outermost error alone.
func (e *connectionError) Timeout() bool { return isTimeout(e.error) }

func isTimeout(err error) bool {
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout()
}

// pass is a request on its way through a Transport.
type pass struct {
	t        *Transport
	request  *http.Request
	endpoint endpoint
	start    time.Time
}

// reportAnswer has the request reported once its answer has ended, or now if it has none.
func (p pass) reportAnswer(res *http.Response, d decision, err error) {
	switch {
	case err != nil:
		p.emit(d, 0, err)
	case res.StatusCode == http.StatusSwitchingProtocols || res.Body == nil:
		p.emit(d, res.StatusCode, nil) // the body is the connection
	default:
		status, b := res.StatusCode, &reportedBody{ReadCloser: res.Body}
		b.ended = func(err error) { p.emit(d, status, err) }
		if p.endpoint.task == generate && httpbody.IsStream(res) && httpbody.Encoding(res.Header) == "" {
			b.last = &lastEvent{}
			b.ended = func(err error) {
				if failed := b.last.failure(p.endpoint.dialect.API()); failed != nil {
					err, d.failed = nil, failed // also if the client then left
				}
				p.emit(d, status, err)
			}
		}
		res.Body = b
	}
}

// emit tells what became of the request. Without a status there was no answer.
func (p pass) emit(d decision, status int, err error) {
	e := event.Event{
		Type: event.RequestProxied, ThreadID: d.logID(), TenantID: p.t.options.Config.Requester.TenantID,
		TokensBefore: d.tokensBefore, TokensAfter: d.tokensSent, Duration: time.Since(p.start),
		Details: map[string]any{"route": p.endpoint.route(), "action": d.action},
	}
	if status != 0 {
		e.Details["status"] = status
	}
	if d.reason != "" {
		e.Details["reason"] = d.reason
	}
	if ctx := p.request.Context(); err != nil && ctx.Err() != nil {
		err = ctx.Err() // the client left, and all else follows from that
	}
	err = cmp.Or(err, d.failed)
	if err != nil {
		e = e.Failing(err)
	}
	event.Emit(context.WithoutCancel(p.request.Context()), p.t.options.Config.Events, e)
}

// reportedBody is the body of an answer. It reports how reading it ended. It may be closed while it is
// read.
type reportedBody struct {
	io.ReadCloser
	ended func(error)
	once  sync.Once

	mu   sync.Mutex
	err  error      // of reading
	last *lastEvent // of a stream; nil for other answers
}

func (b *reportedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		b.last.add(p[:n])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = &connectionError{error: err, side: providerSide}
	}
	return n, err
}

func (b *reportedBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended(b.err)
	})
	return err
}

func (e endpoint) route() string {
	if e.dialect == nil {
		return "other"
	}
	return e.dialect.API() + tasks[e.task]
}

// tasks names the tasks behind an API in a Route.
var tasks = map[task]string{count: "/count", compaction: "/compact"}
