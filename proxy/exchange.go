package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// received is a request as it was read. It does not change: what a stage finds out it hands on, the
// decision above all.
type received struct {
	request       *http.Request
	endpoint      endpoint
	body          string // as it came, compressed if it was
	plainBody     string // decompressed
	decompressErr error  // why there is no plainBody
	start         time.Time
	similar       identify.Similar // plainBody compared with the step before
	held          *heldHistory     // the history that the request does not hold; nil if it has its own
	rewritten     bool             // body is not the client's
	// What the client asks of its provider beside an answer, and is done here (package emulate):
	edited      bool // its own edits have made the request smaller, which had bytesBefore
	bytesBefore int
	managed     bool // it waits for compactions, from threshold tokens on; 0 is as the policy has it
	threshold   int
}

// decision is what goes to the provider, and why.
type decision struct {
	action, reason           string         // the values of ActionHeader and ReasonHeader
	failed                   error          // why the provider gave no answer of the model's; nil if it did
	parsed                   *parsedRequest // nil if the body was not decoded
	step                     *step          // nil if the conversation was not looked up, or that failed
	failedLog                string         // of a conversation where our own part failed; else empty
	body                     []byte         // empty for the client's own
	retry                    retryKind      // why it is sent again
	tokensBefore, tokensSent int            // 0 if not counted
}

// The reasons that code depends on.
const (
	reasonBelowMark  = "below-mark"
	reasonBusy       = "busy"
	reasonCompacting = "compacting"        // a compaction is under way, and the request stopped waiting for it
	reasonFailed     = "compaction-failed" // one was due
	reasonFault      = "fault"
	reasonNative     = "native"
	reasonNoAnswer   = "no-answer" // the provider cannot be reached
	reasonNoRoom     = "no-room"   // nothing smaller can be made
	reasonRefused    = "refused"   // the provider refused what was made here
	reasonTooLarge   = "too-large" // to be looked at
	reasonWebSocket  = "websocket" // to an API that has none here
)

// step is a request whose conversation is known. Each further request for the same answer
// has a step of its own.
type step struct {
	logID        string
	session      *palimpsest.Session
	input        palimpsest.Step
	parsed       *parsedRequest
	toolsOffered bool // the model was offered our tools
	// openLookups are the lookups of an interrupted try, at the end of the log.
	openLookups []*thread.Message
	// earlierLogs are the logs that the conversation continues.
	earlierLogs []string
	// prepared is the last rendering; nil before the first.
	prepared *palimpsest.Prepared
}

// RoundTrip sends a request on its way, smaller if it has to be. It returns the provider's
// answer; errors are those of the connection. When the body of the answer is closed, an event
// of type event.RequestProxied says what was done.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	p := pass{t: t, request: r, start: time.Now()}
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

// send sends a request to the provider.
func send(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	res, err := base.RoundTrip(r)
	if err != nil {
		return nil, connectionError{err, providerSide}
	}
	if res.Header == nil {
		res.Header = http.Header{}
	}
	return res, nil
}

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

func busyAnswer(r *http.Request) *http.Response {
	res := httpbody.NewAnswer(r, http.StatusServiceUnavailable, httpbody.JSON, errorBody(http.StatusServiceUnavailable, "overloaded_error", busyMessage))
	res.Header.Set("Retry-After", "1")
	forward(reasonBusy).setHeaders(res.Header)
	return res
}

const busyMessage = "too many large requests are at work: ask again"

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

// decide chooses what to send: the client's own bytes, or ours.
func (st *stepper) decide(ctx context.Context, x *received) (decision, error) {
	switch {
	case x.endpoint.task == count:
		return st.prepareCount(ctx, x)
	case x.endpoint.task == compaction || x.edited:
		return forward(reasonNative), nil
	case st.isSmall(ctx, x):
		return forward(reasonBelowMark), nil
	}
	r, reason, err := st.parser.parseRequest(ctx, x)
	if err != nil {
		return decision{}, err
	}
	if r == nil {
		return forward(reason), nil
	}
	if reason != "" {
		st.conversations.lineage.noteSideRequest(r.client.SessionID(), r.kind, r.bytes)
	}
	d := decision{action: Passed, reason: reason, parsed: r}
	switch r.kind {
	case identify.Step:
		return st.prepare(ctx, x, r, false)
	case identify.OwnCompaction:
		smaller, err := st.mustShrinkSummary(ctx, x, r)
		if err != nil || !smaller {
			return d, err
		}
		return st.prepare(ctx, x, r.asSummary(), false)
	}
	return d, nil
}

// prepare finds the conversation of a request, appends what is new to its log, and renders.
// overflowed says that the provider has refused the request as too long already, as it came: a plan
// in force may be all that it takes.
func (st *stepper) prepare(ctx context.Context, x *received, r *parsedRequest, overflowed bool) (decision, error) {
	s, changed, err := st.beginStep(ctx, x, r)
	if err != nil {
		return decision{step: s}, err
	}
	if !overflowed || s.prepared.PlanVersion > 0 {
		d, err := st.encodePrepared(ctx, x, s, s.prepared, changed)
		if !overflowed || err != nil || d.action != Passed {
			return d, err
		}
	}
	return st.compactMore(ctx, x, s)
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
			t.models.saveReasoningRule(x, d.step.parsed.model, true)
		case accepted && invalid != nil: // ours was wrong, not the client's
			if invalid.retry == retryReasoning {
				t.models.saveReasoningRule(x, invalid.step.parsed.model, false)
			}
			t.emitFault(x, "invalid", errInvalidHere, invalid.step)
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
			if d.action == Recovered {
				next.action, next.reason = Compacted, reasonRefused
			}
		}
		if !again {
			if why.kind == llm.ErrOverflow {
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

// errInvalidHere is the fault of a changed request that the provider found invalid, where it
// then took the client's own.
var errInvalidHere = errors.New("the provider found the changed request invalid, and took the client's own")

func (sn *sender) send(x *received, d decision) (*http.Response, error) {
	size, body := len(d.body), func() io.Reader { return bytes.NewReader(d.body) }
	if d.action == Passed {
		own := sn.histories.bodyForProvider(x)
		size, body = len(own), func() io.Reader { return strings.NewReader(own) }
	}
	out := withBody(x.request, size, body)
	if d.action != Passed || x.isNearWindow(d) || x.endpoint.task == generate && x.isLarge() || d.fellBack() || x.isAnswerStored() && !httpbody.AcceptsOnlyReadable(out.Header) {
		httpbody.AcceptReadable(out) // the answer is read here, or it may be an overflow that has to be read
	}
	if d.action != Passed {
		out.Header.Del("Content-Encoding")
		if x.held != nil {
			out.Header = httpbody.WithoutListed(out.Header, "Anthropic-Beta", func(beta string) bool { return beta == native.BetaThreads })
		}
	}
	res, err := send(sn.options.Base, out)
	if err == nil && x.endpoint.task == generate {
		sn.watchUsage(x, res, d)
	}
	return res, err
}

// keepOpenLookups leaves the lookups of an interrupted try to the next one.
func (cv *conversations) keepOpenLookups(x *received, d decision) {
	if d.step != nil && len(d.step.openLookups) > 0 {
		cv.openLookups.add(d.step.logID)
	}
}

// fellBack reports whether the client's own bytes go out in place of ours.
func (d decision) fellBack() bool {
	return d.step != nil && (d.reason == reasonRefused || d.reason == reasonFault)
}

// logID is the conversation's, as far as it is known.
func (d decision) logID() string {
	if d.step != nil {
		return d.step.logID
	}
	return d.failedLog
}

// isNearWindow reports whether a request comes near the model's window.
func (x *received) isNearWindow(d decision) bool {
	if d.step == nil {
		return false
	}
	return d.step.input.Window == 0 || 2*d.tokensBefore > d.step.input.Window
}

// setHeaders writes into an answer what was done.
func (d decision) setHeaders(h http.Header) {
	set := func(name, value string) {
		if value != "" && value != "0" {
			h.Set(name, value)
		}
	}
	set(ActionHeader, d.action)
	set(ReasonHeader, d.reason)
	set(ThreadHeader, d.logID())
	set(BeforeHeader, strconv.Itoa(d.tokensBefore))
	set(SentHeader, strconv.Itoa(d.tokensSent))
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
