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

// RoundTrip sends a request on its way, smaller if it has to be. It returns the provider's
// answer; errors are those of the connection. When the body of the answer is closed, an event
// of type event.RequestProxied says what was done.
func (t *Transport) RoundTrip(r *http.Request) (res *http.Response, err error) {
	e, change, d := endpointOf(r.URL.Path), conversationChangeOf(r), decision{action: Passed}
	if t.offersContextTools() && e.dialect != nil {
		e.dialect = e.dialect.WithContextTools()
	}
	p := pass{t, r, e, time.Now()}
	named, own := r.Header.Get(ThreadHeader), *r // a RoundTripper may not change the request that it was given
	if r = &own; named != "" {
		r.Header = r.Header.Clone()
		r.Header.Del(ThreadHeader)
	}
	switch {
	case change.kind == "" && r.Method == http.MethodPost && e.task != other:
		res, d, err = t.readAndRun(&received{request: r, endpoint: e, thread: named, start: p.start})
	case change.kind != "":
		res, err = t.histories.forwardConversationChange(r, change)
	default:
		res, err = sendToProvider(t.options.Base, t.histories.requestForProvider(r))
	}
	if failed, ok := errors.AsType[*connectionError](err); ok && failed.side == providerSide && r.Context().Err() == nil {
		d.reason = reasonNoAnswer
		failed.sent = d
	}
	p.reportAnswer(res, d, err)
	return res, err
}

// readAndRun reads the body of a request, as far as there is room for it, and answers it.
func (t *Transport) readAndRun(x *received) (res *http.Response, d decision, err error) {
	r := x.request
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
	whole, err := t.readBody(x, room.reserve)
	switch {
	case errors.Is(err, httpbody.ErrBusy) || errors.Is(x.decompressErr, httpbody.ErrBusy):
		room.release()
		// A client that is cut off while it sends reads no answer.
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, t.options.MaxBody))
		r.Body.Close()
		return busyAnswer(r), forward(reasonBusy), nil
	case err != nil:
		return nil, forward(""), &connectionError{error: err, side: clientSide}
	case whole:
		r.Body.Close()
		res, d, err = t.run(x)
	default:
		r.Body = httpbody.Rejoin(x.body.String(), nil, r.Body, r.Body)
		d = forward(reasonTooLarge)
		if res, err = sendToProvider(t.options.Base, r); err == nil {
			d.setHeaders(res.Header)
			if x.endpoint.task == generate && res.StatusCode != http.StatusOK {
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
			answer = httpbody.NewAnswer(x.request, refused.Status(), httpbody.JSON, refused.Body())
		}
	}
	asks := x.endpoint.task == generate
	if answer != nil || asks {
		t.asked.Add(1)
		t.byVendor[x.endpoint.dialect.Vendor].Add(1)
	}
	if answer != nil {
		answer.Header.Set(ActionHeader, Emulated)
		return answer, decision{action: Emulated}, nil
	}
	ctx := x.request.Context()
	d := t.decideOrForward(ctx, x, "prepare", func(ctx context.Context) (decision, error) { return t.stepper.decide(ctx, x) })
	d, res, _, err := t.asker.ask(ctx, x, d)
	if (err != nil || res.StatusCode != http.StatusOK) && d.step != nil && len(d.step.openLookups) > 0 {
		t.conversations.keepLookups(d.step.logID) // for the next try
	}
	if err != nil {
		if asks && ctx.Err() == nil { // else the client left
			t.unanswered.Add(1)
		}
		return nil, d, err
	}
	if asks {
		t.addTotals(x, d)
	}
	if asks && res.StatusCode == http.StatusOK {
		if res, d.failed, err = t.lookups.answerCalls(x, res, d); err != nil {
			return nil, d, err
		}
		t.histories.recordAnswer(x, res, d)
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
