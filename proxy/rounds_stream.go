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

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// lookupStream is the body of an answer, read for calls of our tools while it passes. It is read by
// one goroutine, and may be closed by another.
type lookupStream struct {
	*rounds
	logID      string // of the conversation, for Close: the step changes with each round
	translator dialect.Translator
	rewinder   dialect.Rewinder // the translator
	answer     wire.Stream      // of the current round
	unread     error            // why the events are no answer that can be read
	events     *sse.Reader
	httpbody.PendingOutput
	calls       heldBackCalls
	atRoundEnd  bool      // out ends with the last event of the round
	tail        sse.Event // behind that event, with
	tailErr     error     // its error
	passThrough bool      // the rest passes as it comes
	cancel      context.CancelFunc

	mu             sync.Mutex
	body           io.ReadCloser // of the current round
	inFurtherRound bool          // that is not the first, and has not come to its end
	closed         bool
}

// Read gives the client the next bytes. An event may end a round, and the next round takes time:
// what comes before the event does not wait for that.
func (s *lookupStream) Read(p []byte) (int, error) {
	return s.ReadPending(p, s.readEvent, func() bool { return !s.atRoundEnd && s.events.HasBlankLine() })
}

// Close ends the current round, and the wait for the next one. A client that asks again gets the
// lookups that were made.
func (s *lookupStream) Close() error {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFurtherRound {
		s.stepper.conversations.keepLookups(s.logID)
	}
	s.inFurtherRound, s.closed = false, true
	return s.body.Close()
}

func (s *lookupStream) markDone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFurtherRound = false
}

// switchBody continues with the body of another round.
func (s *lookupStream) switchBody(body io.ReadCloser) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body.Close()
	s.body, s.inFurtherRound = body, !s.closed
	if s.closed {
		body.Close()
	}
}

func (s *lookupStream) readEvent() {
	defer func() {
		if p := recover(); p != nil {
			s.emitFault(s.x, "stream", failsafe.Recovered(p), s.step)
			s.Out, s.Err = nil, io.ErrUnexpectedEOF
		}
	}()
	if s.atRoundEnd {
		s.atRoundEnd = false
		s.finishRound(s.tail.Raw, s.tailErr)
		return
	}
	e, err := httpbody.NextEvent(s.events)
	switch {
	case s.passThrough:
		s.Out, s.Err = e.Raw, err
	case err != nil:
		s.finishRound(e.Raw, err)
	default:
		s.takeEvent(e)
	}
}

// takeEvent takes an event into the round, and puts out what the client gets for it.
func (s *lookupStream) takeEvent(e sse.Event) {
	if e.Data != "" && strings.TrimSpace(e.Data) != "[DONE]" && !rawjson.Valid(e.Data) {
		// The stream cannot be read here: from now on it passes as it comes.
		s.emitUnread(errors.New("an event of the answer is no JSON"))
		s.Out, s.passThrough = slices.Concat(s.calls.release(), s.translator.End(dialect.StreamEnd{}), e.Raw), true
		return
	}
	if e.Data != "" {
		if _, err := s.answer.Event(e.Data); s.unread == nil {
			s.unread = err
		}
	}
	if s.canContinue {
		s.calls.startAtCall(e, s.rewinder)
	}
	s.Out, s.atRoundEnd = s.translator.TakeEvent(e)
	s.Out = s.calls.holdOrPass(e, s.Out)
}

// roundAnswer is the model's answer in this round; it is false before the end of the round.
func (s *lookupStream) roundAnswer() (wire.Answer, bool) {
	if s.unread != nil || !s.translator.IsComplete() {
		return wire.Answer{}, false
	}
	a, err := s.answer.Answer()
	s.unread = err
	return a, err == nil
}

// finishRound decides what follows a round. If the end of the answer could not be read, everything
// passes as it came.
func (s *lookupStream) finishRound(tail []byte, err error) {
	a, whole := s.roundAnswer()
	if !whole {
		if s.unread != nil {
			s.emitUnread(s.unread)
		}
		s.markDone()
		s.keepForRetry()
		s.Out, s.Err, s.passThrough = slices.Concat(s.Out, s.calls.release(), s.translator.End(dialect.StreamEnd{}), tail), err, true
		return
	}
	how := s.takeAnswer(a)
	switch how {
	case roundCutOff:
		if s.calls.holding {
			s.rewinder.Rewind()
			s.calls = heldBackCalls{}
		}
		s.startRound(s.rewinder.HeldContent())
		return
	case roundLookups:
		s.startRound(s.calls.release())
		return
	}
	s.markDone()
	s.logRounds()
	// A stream that several responses were joined into has one id for the client, that of the first. The
	// provider holds the whole under the id of the last. Only this process knows which is which.
	if m, ok := s.translator.(*dialect.ResponseStream); ok && m.FirstID != m.LastID {
		s.providerIDs.Put(gjson.Parse(m.FirstID).Str, gjson.Parse(m.LastID).Str, 1)
	}
	s.Out = slices.Concat(s.Out, s.calls.release(), s.translator.End(dialect.StreamEnd{CallsRemoved: how == roundLookupsExceeded}), tail)
	s.Err, s.passThrough = err, true
}

// startRound begins another round, behind the last output of this one.
func (s *lookupStream) startRound(before []byte) {
	counted := true
	err := s.sendRound(func(res *http.Response) error {
		s.translator.StartRound(counted)
		counted = false
		return s.beginRound(res)
	})
	if err == nil {
		s.Out = append(before, s.Out...)
		return
	}
	s.markDone()
	end := dialect.StreamEnd{Failure: err.Error()}
	if f, ok := errors.AsType[*failure](err); ok {
		end.Failure = f.sentence()
		if v := gjson.ParseBytes(f.providerText); rawjson.Valid(f.providerText) && v.IsObject() {
			end.ProviderError = v.Get("@ugly").Raw
		}
		f.closeBody()
	}
	s.Out, s.Err = append(before, s.translator.End(end)...), io.EOF
}

// beginRound reads a round up to the first bytes for the client. Before those it may fail, and the
// round can be asked for again.
func (s *lookupStream) beginRound(res *http.Response) error {
	if !httpbody.DecompressStream(res) {
		res.Body.Close()
		return httpbody.ErrEncoding
	}
	s.switchBody(res.Body)
	s.events, s.answer, s.unread = sse.NewReader(res.Body, 0), s.x.endpoint.dialect.NewStream(), nil
	s.tail, s.tailErr = sse.Event{}, nil
	s.calls = heldBackCalls{}
	for s.Out = nil; len(s.Out) == 0 && !s.atRoundEnd && !s.passThrough; {
		e, err := httpbody.NextEvent(s.events)
		if _, whole := s.roundAnswer(); err != nil && whole {
			s.atRoundEnd, s.tail, s.tailErr = true, e, err // a stream without a final event
			break
		}
		if err != nil {
			return fmt.Errorf("the provider's answer broke off: %w", err)
		}
		if isError(e) {
			return s.failureSaid(res.StatusCode, e.Data)
		}
		s.takeEvent(e)
	}
	return nil
}

// beginsCall reports whether an event of a stream begins a tool call, or is a part of one.
func beginsCall(e sse.Event) bool {
	v := gjson.Parse(e.Data)
	for _, path := range []string{"content_block.type", "item.type"} {
		if kind := v.Get(path).Str; strings.HasSuffix(kind, "tool_use") || strings.HasSuffix(kind, "_call") {
			return true
		}
	}
	return v.Get("choices.0.delta.tool_calls.0").Exists() || len(v.Get("candidates.0.content.parts.#.functionCall").Array()) > 0
}

// heldBackCalls are tool calls that wait for the end of their round. If the answer is cut off and
// another round follows, the client does not get them: the last one is not whole, and none was
// run.
type heldBackCalls struct {
	holding bool
	out     []byte
}

// holdOrPass returns what of an event's bytes goes to the client now.
func (w *heldBackCalls) holdOrPass(e sse.Event, out []byte) []byte {
	if !w.holding || isPrelude(e) {
		return out
	}
	w.out = append(w.out, out...)
	return nil
}

// startAtCall starts to hold back at the first call of a round.
func (w *heldBackCalls) startAtCall(e sse.Event, t dialect.Rewinder) {
	if !w.holding && beginsCall(e) {
		w.holding = true
		t.SavePosition()
	}
}

func (w *heldBackCalls) release() []byte {
	out := w.out
	*w = heldBackCalls{}
	return out
}
