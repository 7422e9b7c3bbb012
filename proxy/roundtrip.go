package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
)

// forward is the decision to send the client's own bytes.
func forward(reason string) decision { return decision{action: Passed, reason: reason} }

func refusalAnswer(r *http.Request, why *native.Refusal) *http.Response {
	return httpbody.NewAnswer(r, why.Status(), httpbody.JSON, why.Body())
}

// RoundTrip sends a request on its way, smaller if it has to be. It returns the provider's
// answer; errors are those of the connection. When the body of the answer is closed, an event
// of type event.RequestProxied says what was done.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := pass{t, r, endpointOf(r.URL.Path), time.Now()}
	res, d, err := t.roundTrip(r, p.endpoint, p.start)
	if e, ok := errors.AsType[*connectionError](err); ok && e.side == providerSide && r.Context().Err() == nil {
		d.reason = reasonNoAnswer
		e.sent = d
	}
	p.reportAnswer(res, d, err)
	return res, err
}

func (t *Transport) roundTrip(r *http.Request, e endpoint, start time.Time) (*http.Response, decision, error) {
	d, named, own := forward(""), r.Header.Get(ThreadHeader), *r // a RoundTripper may not change the request that it was given
	if r = &own; named != "" {
		r.Header = r.Header.Clone()
		r.Header.Del(ThreadHeader)
	}
	if c := conversationChangeOf(r); c.kind != "" {
		res, err := t.histories.forwardConversationChange(r, c)
		return res, d, err
	}
	if r.Method != http.MethodPost || e.task == other {
		res, err := send(t.options.Base, t.histories.requestForProvider(r))
		return res, d, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	room := t.newReservation()
	handedOn := false // to the body of the answer
	defer func() {
		if !handedOn { // also if something panics
			room.release()
		}
	}()
	x := &received{request: r, endpoint: e, thread: named, start: start}
	whole, err := t.readBody(x, room.reserve)
	if errors.Is(err, httpbody.ErrBusy) || errors.Is(x.decompressErr, httpbody.ErrBusy) {
		room.release()
		// A client that is cut off while it sends reads no answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, t.options.MaxBody))
		r.Body.Close()
		return busyAnswer(r), forward(reasonBusy), nil
	}
	var res *http.Response
	switch {
	case err != nil:
		err = &connectionError{error: err, side: clientSide}
	case whole:
		r.Body.Close()
		res, d, err = t.run(x)
	default:
		r.Body = httpbody.Rejoin(x.body.String(), nil, r.Body, r.Body)
		d = forward(reasonTooLarge)
		if res, err = send(t.options.Base, r); err == nil {
			d.setHeaders(res.Header)
			if e.task == generate && res.StatusCode != http.StatusOK {
				d.failed = failureOf(res, refusal{})
			}
		}
	}
	if err != nil {
		return nil, d, err
	}
	handedOn = true
	res.Body = &releasingBody{res.Body, room}
	return res, d, nil
}

// run answers a request that was read: with the history that it does not hold, it is decided what the
// provider gets, that is sent, and what the model looks up here is answered.
func (t *Transport) run(x *received) (*http.Response, decision, error) {
	x, emulated := t.emulate(x)
	answer := emulated.Answer
	if answer == nil {
		var refused *native.Refusal
		if x, refused = t.histories.readHistory(x); refused != nil {
			answer = refusalAnswer(x.request, refused)
		}
	}
	if answer != nil || x.endpoint.task == generate {
		t.countRequest(x.endpoint)
	}
	if answer != nil {
		answer.Header.Set(ActionHeader, Emulated)
		return answer, decision{action: Emulated}, nil
	}
	ctx := x.request.Context()
	d := t.decideOrForward(ctx, x, "prepare", func(ctx context.Context) (decision, error) { return t.stepper.decide(ctx, x) })
	d, res, _, err := t.asker.ask(ctx, x, d)
	if err != nil || res.StatusCode != http.StatusOK {
		t.conversations.keepOpenLookups(x, d)
	}
	if err != nil {
		return nil, d, err
	}
	if x.endpoint.task == generate {
		t.addTotals(x, d)
		if res.StatusCode == http.StatusOK {
			if res, d.failed, err = t.lookups.answerCalls(x, res, d); err != nil {
				return nil, d, err
			}
			t.histories.recordAnswer(x, res, d)
		}
	}
	if d.action == Passed && x.rewritten {
		d.action = Emulated
	}
	d.setHeaders(res.Header)
	if res.StatusCode == http.StatusOK && emulated.Finish != nil {
		t.finishEmulation(x, emulated, res, d)
	}
	return res, d, nil
}

// countRequest counts a request that asks a model.
func (co *core) countRequest(e endpoint) {
	co.asked.Add(1)
	co.byVendor[e.dialect.Vendor].Add(1)
}

// addTotals adds the request to the totals. Its size before compaction was counted if its
// plan is the first of the conversation; later the bytes that were removed tell.
func (co *core) addTotals(x *received, d decision) {
	if d.action == Passed {
		if x.edited {
			co.edited.Add(1)
			co.tokensBefore.Add(int64(x.bytesBefore) / bytesPerToken)
			co.tokensSent.Add(int64(x.body.Len()) / bytesPerToken)
		}
		return
	}
	co.edited.Add(1)
	co.tokensSent.Add(int64(d.tokensSent))
	switch {
	case d.action == Compacted && d.tokensBefore > 0 && d.step != nil && d.step.prepared.PlanVersion == 1:
		co.tokensBefore.Add(int64(d.tokensBefore))
	case len(d.body) > 0:
		co.tokensBefore.Add(int64(float64(d.tokensSent) * float64(d.parsed.bytes) / float64(len(d.body))))
	}
}

// bytesPerToken is about how many bytes a token has, for totals that nobody counted.
const bytesPerToken = 4

// releasingBody is the body of an answer. It keeps the room of the request's body reserved
// until it is closed.
type releasingBody struct {
	io.ReadCloser
	reserved *reservation
}

func (b *releasingBody) Close() error {
	b.reserved.release()
	return b.ReadCloser.Close()
}
