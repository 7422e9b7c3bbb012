package proxy

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// exchange is one request on its way:
//
//	parseRequest      reads the body and names its client (read.go)
//	findConversation  finds the log that it goes on with, or makes a fork (session_place.go)
//	prepare           appends what is new, compacts, renders and encodes (prepare.go)
//	sendWithRetry     sends it, and what is refused in another way (refusal.go)
//	answerLookups     passes the answer on, and answers calls of our tools (rounds.go)
//	recordAnswer      keeps an answer that later requests name (providerstate.go)
//	setHeaders        says what was done
//
// Where our own part fails, decideOrForward sends the client's own bytes (failopen.go).
//
// Nothing in an exchange changes once it was made. What is found out on the way is a value
// that is handed on: the decision above all.
type exchange struct {
	t             *Transport
	request       *http.Request
	endpoint      endpoint
	body          string // as it came, compressed if it was
	plainBody     string // without compression
	decompressErr error  // why there is no plainBody
	start         time.Time
	similar       identify.Similar // plainBody beside the step before
	emulation     emulation        // what native compaction made of the request
}

// decision is what goes to the provider, and why.
type decision struct {
	action, reason           string
	parsed                   *parsedRequest // nil when the request was not looked into
	step                     *step          // nil when its conversation was not looked at
	body                     []byte         // empty for the client's own
	retry                    retryKind      // what it is sent for, after a refusal
	tokensBefore, tokensSent int            // 0 when nobody counted
}

// step is a request whose conversation is known. A further request for the same
// answer has a step of its own.
type step struct {
	logID        string
	session      *palimpsest.Session
	input        palimpsest.Step
	parsed       *parsedRequest
	toolsOffered bool // the model was offered our tools
	// openLookups are the lookups of an earlier try that the log ends with.
	openLookups []*thread.Message
	// earlierLogs are the logs that the conversation goes on from.
	earlierLogs []string
	// prepared is what was last rendered; nil where nothing was.
	prepared *palimpsest.Prepared
}

// run answers the request.
func (x *exchange) run() (*http.Response, error) {
	ctx := x.request.Context()
	if x.endpoint.task == generate {
		x.t.countRequest(x.endpoint)
	}
	d := x.decideOrForward(ctx, "prepare", x.decide)
	d, res, _, err := x.sendWithRetry(ctx, d)
	if err != nil || res.StatusCode != http.StatusOK {
		x.keepOpenLookups(d)
	}
	if err != nil {
		return nil, err
	}
	if x.endpoint.task == generate {
		x.addTotals(d)
		if res.StatusCode == http.StatusOK {
			if res, err = x.answerLookups(res, d); err != nil {
				return nil, err
			}
			x.recordAnswer(res, d)
		}
	}
	x.setHeaders(res, d)
	return res, nil
}

// decide reads a request and says what goes to the provider: the client's own bytes, or ours.
func (x *exchange) decide(ctx context.Context) (decision, error) {
	switch {
	case x.endpoint.task == count:
		return x.prepareCount(ctx)
	case x.endpoint.task == compaction || x.emulation.edited:
		return forward("native"), nil
	case x.isSmall(ctx):
		return forward("below-mark"), nil
	}
	r, reason, err := x.parseRequest(ctx)
	if err != nil {
		return decision{}, err
	}
	if r == nil {
		return forward(reason), nil
	}
	if reason != "" {
		x.t.lineage.noteSideRequest(r.client.SessionID(), r.kind, r.bytes)
	}
	d := decision{action: Passed, reason: reason, parsed: r}
	switch r.kind {
	case identify.Step:
		return x.prepare(ctx, r, false)
	case identify.OwnCompaction:
		smaller, err := x.mustShrinkSummary(ctx, r)
		if err != nil || !smaller {
			return d, err
		}
		return x.prepare(ctx, r.asSummary(), false)
	}
	return d, nil
}

// prepare finds the conversation of a request, adds what is new to its log, and renders. forced
// says that the provider has refused the request already.
func (x *exchange) prepare(ctx context.Context, r *parsedRequest, forced bool) (decision, error) {
	s, changed, err := x.beginStep(ctx, r)
	if err != nil {
		return decision{step: s}, err
	}
	if forced && s.prepared.Compacted == nil {
		return x.compactMore(ctx, s)
	}
	return x.encodePrepared(ctx, s, s.prepared, changed)
}

// sendWithRetry sends what was decided upon. What the provider refuses for a reason that can be
// mended here is sent again in another way. It returns the decision that was answered, and why that
// was refused.
func (x *exchange) sendWithRetry(ctx context.Context, d decision) (decision, *http.Response, refusal, error) {
	res, err := x.send(d)
	for err == nil && x.endpoint.task == generate {
		why := x.readRefusal(res, d)
		if d.retry == retrySmaller && why.kind == "" && res.StatusCode == http.StatusOK {
			x.t.recovered.Add(1)
		}
		next := x.nextTry(ctx, d, res, why)
		if next.retry == d.retry || next.action == Passed && next.retry != retryOriginal {
			if next.retry == retrySmaller && d.retry != retrySmaller {
				d.reason = cmp.Or(next.reason, d.reason)
				res = x.unknownHistoryAnswer(res)
			}
			return d, res, why, nil
		}
		res.Body.Close()
		d = next
		res, err = x.send(d)
	}
	return d, res, refusal{}, err
}

// send sends what was decided upon.
func (x *exchange) send(d decision) (*http.Response, error) {
	size, body := len(d.body), func() io.Reader { return bytes.NewReader(d.body) }
	if d.action == Passed {
		own := x.bodyForProvider()
		size, body = len(own), func() io.Reader { return strings.NewReader(own) }
	}
	out := withBody(x.request, size, body)
	if d.action != Passed || x.isNearWindow(d) || d.fellBack() || x.isAnswerStored() && !acceptsOnlyReadable(out.Header) {
		acceptReadable(out) // it is read here, or may be refused as too long, and that must be read then
	}
	if d.action != Passed {
		out.Header.Del("Content-Encoding")
		if x.emulation.providerState != nil {
			out.Header = withoutBetas(out.Header, native.BetaThreads)
		}
	}
	res, err := x.t.options.Base.RoundTrip(out)
	if err == nil && x.endpoint.task == generate {
		x.watchUsage(res, d)
	}
	return res, err
}

// keepOpenLookups leaves the lookups of an earlier try to the next one.
func (x *exchange) keepOpenLookups(d decision) {
	if d.step != nil && len(d.step.openLookups) > 0 {
		x.t.openLookups.add(d.step.logID)
	}
}

// fellBack reports whether the client's own bytes go out where we had others.
func (d decision) fellBack() bool {
	return d.step != nil && (d.reason == "refused" || d.reason == "fault")
}

// isNearWindow reports whether a request comes near the model's window.
func (x *exchange) isNearWindow(d decision) bool {
	if d.step == nil {
		return x.emulation.reshape != nil // and it is read in any case then
	}
	return d.step.input.Window == 0 || 2*d.tokensBefore > d.step.input.Window
}

// setHeaders writes into the answer what was done.
func (x *exchange) setHeaders(res *http.Response, d decision) {
	if res.Header == nil {
		res.Header = http.Header{}
	}
	res.Header.Set(ActionHeader, d.action)
	if d.reason != "" {
		res.Header.Set(ReasonHeader, d.reason)
	}
	if d.step != nil {
		res.Header.Set(ThreadHeader, d.step.logID)
	}
	if d.tokensBefore > 0 {
		res.Header.Set(BeforeHeader, strconv.Itoa(d.tokensBefore))
	}
	if d.tokensSent > 0 {
		res.Header.Set(SentHeader, strconv.Itoa(d.tokensSent))
	}
}

// addTotals adds the request to the totals. What it would have taken was counted where
// its plan is the first of the conversation; else the bytes that it lost tell.
func (x *exchange) addTotals(d decision) {
	if d.action == Passed {
		return
	}
	x.t.edited.Add(1)
	x.t.tokensSent.Add(int64(d.tokensSent))
	switch {
	case d.action == Compacted && d.tokensBefore > 0 && d.step != nil && d.step.prepared.PlanVersion == 1:
		x.t.tokensBefore.Add(int64(d.tokensBefore))
	case len(d.body) > 0:
		x.t.tokensBefore.Add(int64(float64(d.tokensSent) * float64(d.parsed.bytes) / float64(len(d.body))))
	}
}
