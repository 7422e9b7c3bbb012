package httpbody

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// NextEvent reads an event of a stream. One that is too large passes in pieces without data.
func NextEvent(r *sse.Reader) (sse.Event, error) {
	e, err := r.Next()
	if errors.Is(err, sse.ErrTooLarge) {
		err = nil
	}
	return e, err
}

// PendingOutput is what the client gets next.
type PendingOutput struct {
	Out []byte
	Err error // at the end of out
}

// ReadPending is the Read of a body to which more adds output. It waits only for the first bytes: then
// it adds more as long as ready says that none has to be waited for, so that a million short events
// are not a million packets. An error is returned once the output before it was read.
func (d *PendingOutput) ReadPending(p []byte, more func(), ready func() bool) (int, error) {
	for len(d.Out) == 0 && d.Err == nil {
		more()
	}
	if len(d.Out) == 0 {
		return 0, d.Err
	}
	n := 0
	for {
		k := copy(p[n:], d.Out)
		n, d.Out = n+k, d.Out[k:]
		if n == len(p) || d.Err != nil || !ready() {
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
	PendingOutput
}

// Read gives the client the next bytes.
func (s *rewrittenBody) Read(p []byte) (int, error) {
	return s.ReadPending(p, s.readEvent, s.events.HasEvent)
}

func (s *rewrittenBody) readEvent() {
	e, err := NextEvent(s.events)
	s.Out, s.Err = e.Raw, err
	if err != nil || s.passThrough || e.Data == "" {
		return
	}
	failed := func(err error) {
		s.passThrough = true
		s.onError(err)
	}
	s.Out = failsafe.OrOnPanic(e.Raw, failed, func() []byte { return s.change(e) })
}

// Close gives the connection back.
func (s *rewrittenBody) Close() error { return s.body.Close() }

func IsStream(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
}

// RewriteEvents changes the events of a stream while it passes; it is false if the stream cannot be
// read here.
func RewriteEvents(res *http.Response, failed func(error), change func(sse.Event) []byte) bool {
	if !DecompressStream(res) {
		return false
	}
	res.Body = &rewrittenBody{body: res.Body, events: sse.NewReader(res.Body, 0), change: change, onError: failed}
	return true
}

// RewriteAnswer changes an answer: as a whole, or event by event while it passes. One that cannot be
// read here stays as it is.
func RewriteAnswer(res *http.Response, failed func(error), whole func(body string) string, change func(sse.Event) []byte) {
	if IsStream(res) {
		if RewriteEvents(res, failed, change) {
			SetPlainLength(res, -1)
		}
		return
	}
	plain, err := ReadAnswer(res)
	if err != nil {
		return
	}
	body := string(plain)
	if now := failsafe.OrOnPanic(body, failed, func() string { return whole(body) }); now != body {
		SetPlainLength(res, int64(len(now)))
		Set(res, []byte(now))
	}
}
