package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// exchange is one request and its answer.
type exchange struct {
	t        *Transport
	request  *http.Request
	endpoint endpoint
	original []byte // as it came, compressed if it was
	plain    []byte // without compression
	known    *known // what was read of it
	start    time.Time
	said     string // what the provider said when it refused
	apart    bool   // the conversation will not go on with what is asked here

	native *emulation // what native compaction made of it; nil for nothing
	before int        // bytes of the history that a log holds and the request does not
	kept   *bool      // the provider keeps the response; nil where nobody looked
	asked  *asked     // what a request of the Responses API asks beside; nil for others
}

// verdict is what goes to the provider, and why.
type verdict struct {
	action, reason string
	step           *step // nil when the conversation was not looked at
	body           []byte
	before, sent   int // tokens; 0 when nobody counted
}

// pass sends the client's own bytes.
func pass(reason string) verdict { return verdict{action: Passed, reason: reason} }

// run answers the request.
func (x *exchange) run() (*http.Response, error) {
	ctx := x.request.Context()
	if x.endpoint.task == generate {
		x.t.requested(x.endpoint)
	}
	v := x.guarded(ctx, "prepare", (*exchange).decide)
	res, err := x.send(v)
	if err != nil {
		x.unheard(v)
		return nil, err
	}
	if x.endpoint.task != generate {
		x.mark(res, v)
		return res, nil
	}
	kind := x.refusal(res, v)
	if x.unheld(res, v) {
		if v, res, err = x.whole(ctx, v, res); err != nil {
			return nil, err
		}
		kind = x.refusal(res, v)
	}
	switch {
	case kind == llm.ErrOverflow:
		v, res, err = x.harder(ctx, v, res)
	case kind == llm.ErrInvalid && v.action != Passed:
		v, res, err = x.backOff(v, res)
	case kind == llm.ErrInvalid:
		v, res, err = x.unbound(ctx, v, res)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		x.unheard(v)
	}
	if err != nil {
		return nil, err
	}
	x.tally(v)
	if v.step != nil && v.step.offered && res.StatusCode == http.StatusOK {
		if res, err = x.answer(res, v); err != nil {
			return nil, err
		}
	}
	if res.StatusCode == http.StatusOK {
		if res, err = x.hold(res, v); err != nil {
			return nil, err
		}
	}
	x.mark(res, v)
	return res, nil
}

// unheard leaves the rounds of an earlier try to the next one.
func (x *exchange) unheard(v verdict) {
	if v.step != nil && len(v.step.rounds) > 0 {
		x.t.left.add(v.step.id)
	}
}

// send sends what was decided upon.
func (x *exchange) send(v verdict) (*http.Response, error) {
	body := v.body
	if v.action == Passed {
		body = x.following()
	}
	out := outgoing(x.request, body)
	if v.action != Passed || x.near(v) || v.instead() || x.remembered() && !readableHere(out.Header) {
		plainly(out) // it is read here, or may be refused as too long, and that must be read then
	}
	if v.action != Passed {
		out.Header.Del("Content-Encoding")
	}
	res, err := x.t.options.Base.RoundTrip(out)
	if err == nil && x.endpoint.task == generate {
		x.metered(res, v)
	}
	return res, err
}

// instead reports whether the client's own bytes go out where we had others.
func (v verdict) instead() bool {
	return v.step != nil && (v.reason == "refused" || v.reason == "fault")
}

// near reports whether a request comes near the model's window.
func (x *exchange) near(v verdict) bool {
	if v.step == nil {
		return x.native != nil && x.native.shape != nil // and it is read in any case then
	}
	return v.step.ask.Window == 0 || 2*v.before > v.step.ask.Window
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// refusal reads why a provider refused a request; empty when it did not, or when
// there is nothing to do about it. The answer can still be read afterwards.
func (x *exchange) refusal(res *http.Response, v verdict) llm.Kind {
	api := x.endpoint.dialect.API()
	x.said = ""
	if res.StatusCode < 400 {
		return x.early(res, v)
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = again(said, err, res.Body)
	if err != nil || res.StatusCode == http.StatusTooManyRequests && len(said) == 0 {
		return ""
	}
	text, err := decoded(res.Header, said, maxRefusal)
	if err != nil {
		text = nil
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			return ""
		}
	}
	x.said = string(text)
	kind := llm.Classify(api, res.StatusCode, text)
	if kind == llm.ErrOverflow {
		if window := namedWindow(x.said); window > 0 {
			x.learn(window)
		}
	}
	return kind
}

// harder asks once more with a smaller request. Where none can be made the
// refusal is the answer.
func (x *exchange) harder(ctx context.Context, v verdict, res *http.Response) (verdict, *http.Response, error) {
	smaller := x.guarded(ctx, "overflow", func(x *exchange, ctx context.Context) (verdict, error) { return x.overflowed(ctx, v) })
	if smaller.action == Passed {
		if smaller.reason != "" {
			v.reason = smaller.reason
		}
		if a := x.asked; a != nil && a.Previous != "" && !a.known {
			res.Body.Close()
			return v, refused(x.request, unknownResponse(a.Previous)), nil
		}
		if x.known != nil && x.known.top["thread"].IsObject() && x.endpoint.dialect.API() == wire.Anthropic {
			res.Body.Close()
			return v, threadless(x.request), nil
		}
		return v, res, nil
	}
	res.Body.Close()
	again, err := x.send(smaller)
	if err != nil {
		return smaller, nil, err
	}
	switch kind := x.refusal(again, smaller); {
	case kind == llm.ErrInvalid:
		return x.backOff(smaller, again)
	case kind == "" && again.StatusCode == http.StatusOK:
		x.t.recovered.Add(1)
	}
	return smaller, again, nil
}

// threadless answers a request that goes on with a message thread, whose history
// the provider holds, in the way that makes the client send its history itself:
// then it can be made smaller.
func threadless(r *http.Request) *http.Response {
	const body = `{"type":"error","error":{"type":"invalid_request_error","message":"the thread does not fit the context window any more: send the messages themselves","details":{"error_code":"thread_unsupported_request","unsupported":["thread"]}}}`
	return answering(r, http.StatusBadRequest, jsonKind, body)
}

// backOff is for a request of ours that the provider finds invalid: the client's
// own goes out, and its answer counts, whatever it is.
func (x *exchange) backOff(v verdict, res *http.Response) (verdict, *http.Response, error) {
	x.fault("invalid", llm.ErrInvalid, v)
	res.Body.Close()
	v = verdict{action: Passed, reason: "refused", step: v.step}
	again, err := x.send(v)
	if err != nil || x.refusal(again, v) != llm.ErrInvalid {
		return v, again, err
	}
	return x.unbound(x.request.Context(), v, again)
}

// unbound is for a request of the client's own that is refused because of the
// model's reasoning in it: reasoning that was made for a prompt of ours does not
// hold for the client's. Without any reasoning the request is sent once more.
func (x *exchange) unbound(ctx context.Context, v verdict, res *http.Response) (verdict, *http.Response, error) {
	if v.step == nil && v.reason != "fault" && v.reason != "native" || !sealed.MatchString(x.said) {
		return v, res, nil
	}
	plain := x.guarded(ctx, "reasoning", (*exchange).withoutReasoning)
	if plain.action == Passed {
		return v, res, nil
	}
	res.Body.Close()
	again, err := x.send(plain)
	return plain, again, err
}

// sealed finds out whether a refusal is about reasoning.
var sealed = regexp.MustCompile(`(?i)thinking|signature|encrypted|reasoning`)

func (x *exchange) withoutReasoning(context.Context) (verdict, error) {
	read, reason := x.read()
	if read == nil {
		return pass(reason), nil
	}
	p := own(read)
	profile := render.For(x.endpoint.dialect.API())
	profile.BoundReasoning = true
	var list []thread.Message
	for _, m := range p.Messages {
		if m = profile.Translate(m, true); len(m.Parts) > 0 {
			list = append(list, m)
		}
	}
	p.Messages = list
	body, err := x.endpoint.dialect.Encode(p)
	if err != nil {
		return verdict{}, err
	}
	return verdict{action: Planned, reason: "without-reasoning", body: body}, nil
}

// guarded runs what is ours: whatever goes wrong in it, the client's request
// passes as it came. What it has not finished in time works on a copy that nobody
// looks at any more.
func (x *exchange) guarded(ctx context.Context, what string, f func(*exchange, context.Context) (verdict, error)) verdict {
	ctx, cancel := context.WithTimeout(ctx, x.t.options.Deadline)
	defer cancel()
	type outcome struct {
		x   *exchange
		v   verdict
		err error
	}
	done := make(chan outcome, 1)
	own := *x
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- outcome{x: &own, err: fmt.Errorf("%w: %v", errPanic, p)}
			}
		}()
		v, err := f(&own, ctx)
		done <- outcome{&own, v, err}
	}()
	select {
	case o := <-done:
		*x = *o.x
		if o.err == nil {
			return o.v
		}
		x.fault(what, o.err, o.v)
	case <-ctx.Done():
		x.fault(what, ctx.Err(), verdict{})
	}
	return pass("fault")
}

var errPanic = errors.New("panic")

// fault says that something of ours failed and that the request goes on as it
// came.
func (x *exchange) fault(what string, err error, v verdict) {
	x.t.faults.Add(1)
	e := event.Event{
		Type: event.Failed, Err: event.ErrorClass(err), Duration: time.Since(x.start),
		Details: map[string]any{"fallback": "passthrough", "where": "proxy_" + what},
	}
	if errors.Is(err, errPanic) {
		e.Err = "panic"
	}
	if v.step != nil {
		e.ThreadID = v.step.id
	}
	event.Emit(context.WithoutCancel(x.request.Context()), x.t.events, e)
}

// mark writes into the answer what was done.
func (x *exchange) mark(res *http.Response, v verdict) {
	if res.Header == nil {
		res.Header = http.Header{}
	}
	res.Header.Set(ActionHeader, v.action)
	if v.reason != "" {
		res.Header.Set(ReasonHeader, v.reason)
	}
	if v.step != nil {
		res.Header.Set(ThreadHeader, v.step.id)
	}
	if v.before > 0 {
		res.Header.Set(BeforeHeader, strconv.Itoa(v.before))
	}
	if v.sent > 0 {
		res.Header.Set(SentHeader, strconv.Itoa(v.sent))
	}
}

// tally adds the request to the totals. What it would have taken was counted where
// its plan is the first of the conversation; else the bytes that it lost tell.
func (x *exchange) tally(v verdict) {
	if v.action == Passed {
		return
	}
	t := x.t
	t.edited.Add(1)
	t.sent.Add(int64(v.sent))
	switch {
	case v.action == Compacted && v.before > 0 && v.step != nil && v.step.prepared.PlanVersion == 1:
		t.before.Add(int64(v.before))
	case len(v.body) > 0:
		t.before.Add(int64(float64(v.sent) * float64(x.size()) / float64(len(v.body))))
	}
}
