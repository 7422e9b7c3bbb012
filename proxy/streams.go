package proxy

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// nextEvent reads an event of a stream. One that is too large passes in pieces without data.
func nextEvent(r *sse.Reader) (sse.Event, error) {
	e, err := r.Next()
	if errors.Is(err, sse.ErrTooLarge) {
		err = nil
	}
	return e, err
}

// pendingOutput is what the client gets next.
type pendingOutput struct {
	out []byte
	err error // at the end of out
}

// readPending is the Read of a body to which more adds output. It waits only for the first bytes: then
// it adds more as long as ready says that none has to be waited for, so that a million short events
// are not a million packets. An error is returned once the output before it was read.
func (d *pendingOutput) readPending(p []byte, more func(), ready func() bool) (int, error) {
	for len(d.out) == 0 && d.err == nil {
		more()
	}
	if len(d.out) == 0 {
		return 0, d.err
	}
	n := 0
	for {
		k := copy(p[n:], d.out)
		n, d.out = n+k, d.out[k:]
		if n == len(p) || d.err != nil || !ready() {
			return n, nil
		}
		more()
	}
}

// rewrittenBody is the body of a stream whose events are changed while they pass. If that fails, the
// rest passes as it comes. It is read by one goroutine.
type rewrittenBody struct {
	body        io.Closer
	events      *sse.Reader
	change      func(sse.Event) []byte
	onError     func(error)
	passThrough bool
	pendingOutput
}

// Read gives the client the next bytes.
func (s *rewrittenBody) Read(p []byte) (int, error) {
	return s.readPending(p, s.readEvent, s.events.HasEvent)
}

func (s *rewrittenBody) readEvent() {
	e, err := nextEvent(s.events)
	s.out, s.err = e.Raw, err
	if err != nil || s.passThrough || e.Data == "" {
		return
	}
	failed := func(err error) {
		s.passThrough = true
		s.onError(err)
	}
	s.out = orOnPanic(e.Raw, failed, func() []byte { return s.change(e) })
}

// Close gives the connection back.
func (s *rewrittenBody) Close() error { return s.body.Close() }

func isStream(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
}

// rewriteEvents changes the events of a stream while it passes; it is false if the stream cannot be
// read here.
func rewriteEvents(res *http.Response, failed func(error), change func(sse.Event) []byte) bool {
	if !decompressStream(res) {
		return false
	}
	res.Body = &rewrittenBody{body: res.Body, events: sse.NewReader(res.Body, 0), change: change, onError: failed}
	return true
}

// rewriteAnswer changes an answer: as a whole, or event by event while it passes. One that cannot be
// read here stays as it is.
func rewriteAnswer(res *http.Response, failed func(error), whole func(body string) string, change func(sse.Event) []byte) {
	if isStream(res) {
		if rewriteEvents(res, failed, change) {
			setPlainLength(res, -1)
		}
		return
	}
	plain, err := readAnswer(res)
	if err != nil {
		return
	}
	body := string(plain)
	if now := orOnPanic(body, failed, func() string { return whole(body) }); now != body {
		setPlainLength(res, int64(len(now)))
		setBody(res, []byte(now))
	}
}

// orOnPanic returns what f returns, or otherwise if f panics.
func orOnPanic[T any](otherwise T, failed func(error), f func() T) (out T) {
	defer func() {
		if p := recover(); p != nil {
			failed(recovered(p))
			out = otherwise
		}
	}()
	return f()
}
