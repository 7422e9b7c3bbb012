package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
)

// nextEvent reads an event of a stream. One that is too large passes in pieces, which nobody
// looks into.
func nextEvent(r *sse.Reader) (sse.Event, error) {
	e, err := r.Next()
	if errors.Is(err, sse.ErrTooLarge) {
		err = nil
	}
	return e, err
}

// pendingOutput is what the client is to get next.
type pendingOutput struct {
	out []byte
	err error // at the end of out
}

// give is io.Reader's Read; more makes more due, and ready says that it need not wait for
// that: what is given at once is sent at once, so that a million short events are not a
// million packets.
func (d *pendingOutput) give(p []byte, more func(), ready func() bool) (int, error) {
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

// rewritten is the body of a stream whose events are looked at, and changed, while they
// pass. Where that fails, the rest passes as it comes. It is read by one goroutine.
type rewritten struct {
	body   io.Closer
	events *sse.Reader
	change func(sse.Event) []byte
	failed func(error)
	asIs   bool
	pendingOutput
}

// Read gives the client the next bytes.
func (s *rewritten) Read(p []byte) (int, error) { return s.give(p, s.more, s.events.Ready) }

func (s *rewritten) more() {
	e, err := nextEvent(s.events)
	s.out, s.err = e.Raw, err
	if err != nil || s.asIs || e.Data == "" {
		return
	}
	failed := func(err error) {
		s.asIs = true
		s.failed(err)
	}
	s.out = attempted(e.Raw, failed, func() []byte { return s.change(e) })
}

// Close gives the connection back.
func (s *rewritten) Close() error { return s.body.Close() }

// streams reports whether an answer is a stream of events.
func streams(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
}

// eventwise has a stream changed while it passes; it is false where nobody here can read it.
func (x *exchange) eventwise(res *http.Response, change func(sse.Event) []byte) bool {
	if !unpacked(res) {
		return false
	}
	res.Body = &rewritten{body: res.Body, events: sse.NewReader(res.Body, 0), change: change, failed: x.streamFault}
	return true
}

// shaped hands an answer on as it is changed: as a whole, or event by event. One that
// cannot be read here stays as it is.
func (x *exchange) shaped(res *http.Response, whole func(body string) string, change func(sse.Event) []byte) {
	if streams(res) {
		if x.eventwise(res, change) {
			uncompressed(res, -1)
		}
		return
	}
	raw, all := readAnswer(res)
	if !all {
		return
	}
	body, err := decoded(res.Header, raw, maxAnswer, nil)
	if err != nil {
		return
	}
	now := attempted(string(body), x.streamFault, func() string { return whole(string(body)) })
	if now != string(body) {
		uncompressed(res, int64(len(now)))
		given(res, []byte(now))
	}
}

// attempted is what f returns, or else, where it panics, what is given.
func attempted[T any](otherwise T, failed func(error), f func() T) (out T) {
	defer func() {
		if p := recover(); p != nil {
			failed(fmt.Errorf("%w: %v", errPanic, p))
			out = otherwise
		}
	}()
	return f()
}
