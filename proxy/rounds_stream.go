package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// stream is the body of an answer that is read for calls of our tools while it
// passes. It is read by one goroutine, and may be closed by another.
type stream struct {
	*rounds
	translator translator
	answer     wire.Stream // of the round that is read now
	odd        bool        // it does not add up
	events     *sse.Reader
	pendingOutput
	calls   heldBackCalls
	last    bool      // out goes up to the last event of the round
	tail    sse.Event // what came behind the last event, with
	tailErr error     // its error
	ended   bool      // the client was told all: the rest passes as it comes
	cancel  context.CancelFunc

	mu     sync.Mutex
	body   io.ReadCloser // of the round that is read now
	open   bool          // that is a further one, and has not come to its end
	closed bool
}

// Read gives the client the next bytes. An event may be the end of a round, behind which
// another one is asked for: what comes before it does not wait for that.
func (s *stream) Read(p []byte) (int, error) {
	return s.give(p, s.more, func() bool { return !s.last && s.events.Empty() })
}

// Close ends the round that is read now, and the wait for the next one. A client
// that asks again has the lookups that were made.
func (s *stream) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open {
		s.x.t.waiting.add(s.step.id)
	}
	s.open, s.closed = false, true
	return s.body.Close()
}

// settled says that the rounds have come to an end, whichever.
func (s *stream) settled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = false
}

// read takes the body of another round in place of the one before.
func (s *stream) read(body io.ReadCloser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body.Close()
	s.body, s.open = body, !s.closed
	if s.closed {
		body.Close()
	}
}

// more takes one event.
func (s *stream) more() {
	defer func() {
		if p := recover(); p != nil {
			s.x.fault("stream", fmt.Errorf("%w: %v", errPanic, p), s.step)
			s.out, s.err = nil, io.ErrUnexpectedEOF
		}
	}()
	if s.last {
		s.last = false
		s.finish(s.tail.Raw, s.tailErr)
		return
	}
	e, err := nextEvent(s.events)
	switch {
	case s.ended:
		s.out, s.err = e.Raw, err
	case err != nil:
		s.finish(e.Raw, err)
	default:
		s.pass(e)
	}
}

// pass takes an event into the round, and gives the client what it is to get.
func (s *stream) pass(e sse.Event) {
	if e.Data != "" && strings.TrimSpace(e.Data) != "[DONE]" && !rawjson.Valid(e.Data) {
		// Nobody here understands the stream: from now on it passes as it comes.
		s.out, s.ended = slices.Concat(s.calls.release(), s.translator.end(streamEnd{}), e.Raw), true
		return
	}
	if e.Data != "" {
		_, err := s.answer.Event(e.Data)
		s.odd = s.odd || err != nil
	}
	if s.continues {
		s.calls.begin(e, s.translator.(withdrawer))
	}
	s.out, s.last = s.translator.next(e)
	s.out = s.calls.pass(e, s.out)
}

// said is what the model said in this round; it is false before the round has come
// to its end.
func (s *stream) said() (wire.Answer, bool) {
	if s.odd || !s.translator.whole() {
		return wire.Answer{}, false
	}
	a, err := s.answer.Answer()
	return a, err == nil
}

// finish decides at the end of a round. Without an end that was understood
// everything passes as it came.
func (s *stream) finish(tail []byte, err error) {
	a, whole := s.said()
	if !whole {
		s.settled()
		s.leave()
		s.out, s.err, s.ended = slices.Concat(s.out, s.calls.release(), s.translator.end(streamEnd{}), tail), err, true
		return
	}
	what := s.take(a)
	switch what {
	case cutShort:
		if s.calls.on {
			s.translator.(withdrawer).withdraw()
			s.calls = heldBackCalls{}
		}
		s.further(s.translator.(withdrawer).rest())
		return
	case lookedUp:
		s.further(s.calls.release())
		return
	}
	s.settled()
	s.keep()
	s.renames()
	s.out = slices.Concat(s.out, s.calls.release(), s.translator.end(streamEnd{dangling: what == tooOften}), tail)
	s.err, s.ended = err, true
}

// further goes on with another round, behind what is still to be given of this one.
func (s *stream) further(before []byte) {
	counted := true
	err := s.ask(func(res *http.Response) error {
		s.translator.again(counted)
		counted = false
		return s.begin(res)
	})
	if err == nil {
		s.out = append(before, s.out...)
		return
	}
	s.settled()
	end := streamEnd{failure: err.Error()}
	if f, ok := errors.AsType[*failure](err); ok {
		end.failure, end.wrote = f.said(), s.wrote(f)
		f.close()
	}
	s.out, s.err = append(before, s.translator.end(end)...), io.EOF
}

// wrote is what the provider wrote of a failure, as JSON; empty when it is none.
func (s *stream) wrote(f *failure) string {
	if v := gjson.ParseBytes(f.wrote); rawjson.Valid(f.wrote) && v.IsObject() {
		return v.Get("@ugly").Raw
	}
	return ""
}

// begin reads a round up to the first bytes for the client. Where it fails before
// them nobody has seen anything of it, and it can be asked for again.
func (s *stream) begin(res *http.Response) error {
	if !unpacked(res) {
		res.Body.Close()
		return errEncoding
	}
	s.read(res.Body)
	s.events, s.answer, s.odd = sse.NewReader(res.Body, 0), s.x.endpoint.dialect.NewStream(), false
	s.tail, s.tailErr = sse.Event{}, nil
	s.calls = heldBackCalls{}
	for s.out = nil; len(s.out) == 0 && !s.last && !s.ended; {
		e, err := nextEvent(s.events)
		if _, whole := s.said(); err != nil && whole {
			s.last, s.tail, s.tailErr = true, e, err // a stream without an event that ends it
			break
		}
		if err != nil {
			return fmt.Errorf("the answer of the provider broke off: %w", err)
		}
		if isError(e) {
			f := &failure{wrote: []byte(e.Data)}
			if said := llm.Failure(s.x.endpoint.dialect.API(), res.StatusCode, f.wrote); said != nil {
				f.APIError = *said
			}
			return f
		}
		s.pass(e)
	}
	return nil
}
