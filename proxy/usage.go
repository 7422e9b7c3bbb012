package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// metered has an answer read, while it passes, for what the provider counted of
// the request: that corrects the counter for the thread. What stays far below
// every mark is not looked into.
func (x *exchange) metered(res *http.Response, d decision) {
	if d.step == nil || res.StatusCode != http.StatusOK || d.instead() || d.action == Passed && !x.near(d) || d.step.read.beyond() {
		return
	}
	stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	if stream && !unpacked(res) {
		return
	}
	m := &meter{ReadCloser: res.Body, x: x, step: d.step, of: d.step.prepared, header: res.Header.Clone()}
	if stream {
		m.stream = x.endpoint.dialect.NewStream()
	}
	res.Body = m
}

// beyond reports whether the provider puts into the prompt what the request does
// not hold, so that its count is of something else: Gemini's caches, OpenAI's stored
// prompts.
func (r *reading) beyond() bool { return r.Names("cachedContent") || r.Names("prompt") }

// meter is the body of an answer. It books the usage before it hands out the
// bytes that tell of it, so that no further request can be there first.
type meter struct {
	io.ReadCloser
	x      *exchange
	step   *step
	of     *palimpsest.Prepared // what the request was
	header http.Header
	stream wire.Stream // nil for an answer in one piece

	buf    []byte // a line that is not whole, or a body to be handed out
	err    error  // behind a body
	read   bool   // the body was read
	booked bool
}

func (m *meter) Read(p []byte) (int, error) {
	if m.stream != nil {
		n, err := m.ReadCloser.Read(p)
		m.look(p[:n])
		return n, err
	}
	if !m.read {
		m.read = true
		m.whole()
	}
	n := copy(p, m.buf)
	if m.buf = m.buf[n:]; n > 0 {
		return n, nil
	}
	if m.err != nil {
		return 0, m.err
	}
	return m.ReadCloser.Read(p)
}

// whole reads a body in one piece. What is longer than anybody's answer passes.
func (m *meter) whole() {
	raw, all, err := readBody[[]byte](m.ReadCloser, maxAnswer)
	m.buf, m.err = raw, err
	if err != nil || !all {
		return
	}
	body, err := decoded(m.header, raw, maxAnswer)
	if err != nil {
		return
	}
	if a, err := m.x.endpoint.dialect.DecodeAnswer(body); err == nil {
		m.book(a.Usage)
	}
}

// look goes through the lines of a stream.
func (m *meter) look(p []byte) {
	for !m.booked {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if !whole {
			if m.buf = append(m.buf, p...); len(m.buf) > maxEvent {
				m.booked, m.buf = true, nil
			}
			return
		}
		p = rest
		if len(m.buf) > 0 {
			line = append(m.buf, line...)
			m.buf = nil
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && bytes.Contains(data, []byte(`"usage`)) {
			m.event(string(bytes.TrimSpace(data)))
		}
	}
}

// event takes in an event that may tell of usage. It is booked at the end of the
// answer, when all is known that could speak against it; Chat tells of it in an
// event of its own. Where the rest of the answer is left out, not every piece of it
// fits.
func (m *meter) event(data string) {
	now, err := m.stream.Event(data)
	if err == nil && now.Usage.Known && (now.Stop != "" || m.x.endpoint.dialect.API() == wire.Chat) {
		m.book(now.Usage)
	}
}

// patience bounds how long an answer waits until its usage is booked: somebody
// else may be at work on the thread.
const patience = time.Second

// book tells the thread what the provider counted, if it was of the prompt that
// the thread handed out last.
func (m *meter) book(used wire.Usage) {
	if m.booked = true; used.Mixed || used.Input == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.x.request.Context()), patience)
	defer cancel()
	x, s, of := *m.x, m.step, m.of
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				x.fault("usage", fmt.Errorf("%w: %v", errPanic, p), s)
			}
		}()
		if err := s.session.FinishStep(ctx, of, llm.Usage{Input: used.Input, Known: true}); err != nil {
			x.fault("usage", err, s)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
