package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/llm"
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
	p := pass{t, r, Route(r.URL.Path), time.Now()}
	res, d, err := t.roundTrip(r, p.start)
	if isUnanswered(err) && r.Context().Err() == nil {
		d.reason = reasonNoAnswer
		err = unanswered{err, d}
	}
	p.reportAnswer(res, d, err)
	return res, err
}

func (t *Transport) roundTrip(r *http.Request, start time.Time) (*http.Response, decision, error) {
	e, d := endpointOf(r.URL.Path), forward("")
	if c := conversationChangeOf(r); c.kind != "" {
		res, err := t.histories.forwardConversationChange(withoutOurHeaders(r), c)
		return res, d, err
	}
	if r.Method != http.MethodPost || e.task == other {
		res, err := send(t.options.Base, t.histories.requestForProvider(withoutOurHeaders(r)))
		return res, d, err
	}
	if r.Body == nil {
		r = withoutOurHeaders(r)
		r.Body = http.NoBody
	}
	room := t.newReservation()
	handedOn := false // to the body of the answer
	defer func() {
		if !handedOn { // also if something panics
			room.release()
		}
	}()
	x := &received{request: r, endpoint: e, start: start}
	body, whole, err := httpbody.Read[string](r.Body, t.options.MaxBody, room.reserve)
	if err == nil && whole {
		x.body = body
		x.plainBody, x.decompressErr = httpbody.Decompress(r.Header, body, t.options.MaxBody, room.reserve)
	}
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
		err = connectionError{err, clientSide}
	case whole:
		r.Body.Close()
		res, d, err = t.runEmulated(x)
	default:
		out := withoutOurHeaders(r)
		out.Body = httpbody.Rejoin(body, nil, r.Body, r.Body)
		d = forward(reasonTooLarge)
		if res, err = send(t.options.Base, out); err == nil {
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

func (t *Transport) run(x *received) (*http.Response, decision, error) {
	next, err := t.histories.readHistory(x)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		t.countRequest(x.endpoint)
		answer := refusalAnswer(x.request, refusal)
		answer.Header.Set(ActionHeader, Emulated)
		return answer, decision{action: Emulated}, nil
	}
	x = next
	ctx := x.request.Context()
	if x.endpoint.task == generate {
		t.countRequest(x.endpoint)
	}
	d := t.decideOrForward(ctx, x, "prepare", func(ctx context.Context) (decision, error) { return t.stepper.decide(ctx, x) })
	d, res, _, err := t.sendWithRetry(ctx, x, d)
	if err != nil || res.StatusCode != http.StatusOK {
		t.conversations.keepOpenLookups(x, d)
	}
	if err != nil {
		return nil, d, err
	}
	if x.endpoint.task == generate {
		t.addTotals(x, d)
		if res.StatusCode == http.StatusOK {
			if res, d.failed, err = t.answerLookups(x, res, d); err != nil {
				return nil, d, err
			}
			t.histories.recordAnswer(x, res, d)
		}
	}
	if d.action == Passed && x.rewritten {
		d.action = Emulated
	}
	d.setHeaders(res.Header)
	return res, d, nil
}

// sendWithRetry sends a request, and sends it again in another way if the provider refuses it
// for a reason that can be mended here. It returns the decision that was answered, and why
// that was refused.
func (t *Transport) sendWithRetry(ctx context.Context, x *received, d decision) (decision, *http.Response, refusal, error) {
	var invalid *decision // ours, which the provider found invalid
	res, err := t.sender.send(x, d)
	for err == nil && x.endpoint.task == generate {
		why := t.sender.readRefusal(x, res, d)
		accepted := why.kind == "" && res.StatusCode == http.StatusOK
		switch {
		case accepted && d.retry == retryReasoning:
			t.models.saveReasoning(x, d.step.parsed.model.Name, true)
		case accepted && invalid != nil: // ours was wrong, not the client's
			if invalid.retry == retryReasoning {
				t.models.saveReasoning(x, invalid.step.parsed.model.Name, false)
			}
			t.emitFault(x, "invalid", errInvalidHere, invalid.step)
			t.undoUseless(x, invalid.step)
		case accepted && (d.retry == retryPlanned || d.retry == retrySmaller):
			t.recovered.Add(1)
		}
		next, again := t.stepper.nextTry(ctx, x, d, res, why)
		if again && next.retry == retryOriginal {
			ours := d
			invalid = &ours
		}
		if !again && !accepted {
			next.failed = failureOf(res, why)
			if slices.Contains(uncured, why.kind) {
				t.undoUseless(x, next.step)
			}
			if d.action == Recovered {
				next.action, next.reason = Compacted, reasonRefused
			}
		}
		if !again {
			if llm.IsOverflow(why.kind) {
				res = x.unknownHistoryAnswer(res)
			}
			return next, res, why, nil
		}
		res.Body.Close()
		d = next
		res, err = t.sender.send(x, d)
	}
	if err != nil && d.action == Recovered {
		d.action = Compacted
	}
	return d, res, refusal{}, err
}

// uncured are refusals after which a plan that was made for the request has not helped.
var uncured = []llm.Kind{llm.ErrOutput, llm.ErrPictures, llm.ErrBytes, llm.ErrInvalid}

// undoUseless puts the plan of before the request in force again, if one was made for it.
func (co *core) undoUseless(x *received, s *step) {
	if s == nil || s.prepared == nil || s.prepared.PlanVersion <= s.planBefore {
		return
	}
	co.bestEffort(x, "undo", s, func(ctx context.Context) error {
		return s.session.OnlyIf(palimpsest.Condition{Plans: &s.prepared.PlanVersion}).Undo(ctx, s.planBefore)
	})
}

// errInvalidHere is the fault of a changed request that the provider found invalid, where it
// then took the client's own.
var errInvalidHere = errors.New("the provider found the changed request invalid, and took the client's own")

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
			co.tokensSent.Add(int64(len(x.body)) / bytesPerToken)
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
