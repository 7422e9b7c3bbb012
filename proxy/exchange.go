package proxy

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// exchange is one request on its way:
//
//	read ──▶ identify ──▶ prepare ──▶ send, retry ──▶ answer lookups ──▶ keep ──▶ mark
//
// Nothing in it changes once it was made. What is found out on the way is a value
// that is handed on: the decision above all.
type exchange struct {
	t          *Transport
	request    *http.Request
	endpoint   endpoint
	body       string // as it came, compressed if it was
	plain      string // without compression
	unreadable error  // why there is no such
	start      time.Time
	native     emulation // what native compaction made of the request
}

// decision is what goes to the provider, and why.
type decision struct {
	action, reason string
	read           *reading // nil when the request was not looked into
	step           *step    // nil when its conversation was not looked at
	body           []byte   // empty for the client's own
	remedy         remedy   // what it is sent for, after a refusal
	before, sent   int      // tokens; 0 when nobody counted
}

// run answers the request.
func (x *exchange) run() (*http.Response, error) {
	ctx := x.request.Context()
	if x.endpoint.task == generate {
		x.t.requested(x.endpoint)
	}
	d := x.guarded(ctx, "prepare", x.decide)
	d, res, _, err := x.ask(ctx, d)
	if err != nil || res.StatusCode != http.StatusOK {
		x.unanswered(d)
	}
	if err != nil {
		return nil, err
	}
	if x.endpoint.task == generate {
		x.tally(d)
		if res.StatusCode == http.StatusOK {
			if res, err = x.answer(res, d); err != nil {
				return nil, err
			}
			x.keep(res, d)
		}
	}
	x.mark(res, d)
	return res, nil
}

// unanswered leaves the lookups of an earlier try to the next one.
func (x *exchange) unanswered(d decision) {
	if d.step != nil && len(d.step.open) > 0 {
		x.t.waiting.add(d.step.id)
	}
}

// send sends what was decided upon.
func (x *exchange) send(d decision) (*http.Response, error) {
	size, body := len(d.body), func() io.Reader { return bytes.NewReader(d.body) }
	if d.action == Passed {
		own := x.renamed()
		size, body = len(own), func() io.Reader { return strings.NewReader(own) }
	}
	out := outgoing(x.request, size, body)
	if d.action != Passed || x.near(d) || d.instead() || x.keeps() && !readableHere(out.Header) {
		readable(out) // it is read here, or may be refused as too long, and that must be read then
	}
	if d.action != Passed {
		out.Header.Del("Content-Encoding")
		if x.native.state != nil {
			out.Header = withoutBetas(out.Header, native.BetaThreads)
		}
	}
	res, err := x.t.options.Base.RoundTrip(out)
	if err == nil && x.endpoint.task == generate {
		x.metered(res, d)
	}
	return res, err
}

// instead reports whether the client's own bytes go out where we had others.
func (d decision) instead() bool {
	return d.step != nil && (d.reason == "refused" || d.reason == "fault")
}

// near reports whether a request comes near the model's window.
func (x *exchange) near(d decision) bool {
	if d.step == nil {
		return x.native.shape != nil // and it is read in any case then
	}
	return d.step.ask.Window == 0 || 2*d.before > d.step.ask.Window
}

// mark writes into the answer what was done.
func (x *exchange) mark(res *http.Response, d decision) {
	if res.Header == nil {
		res.Header = http.Header{}
	}
	res.Header.Set(ActionHeader, d.action)
	if d.reason != "" {
		res.Header.Set(ReasonHeader, d.reason)
	}
	if d.step != nil {
		res.Header.Set(ThreadHeader, d.step.id)
	}
	if d.before > 0 {
		res.Header.Set(BeforeHeader, strconv.Itoa(d.before))
	}
	if d.sent > 0 {
		res.Header.Set(SentHeader, strconv.Itoa(d.sent))
	}
}

// tally adds the request to the totals. What it would have taken was counted where
// its plan is the first of the conversation; else the bytes that it lost tell.
func (x *exchange) tally(d decision) {
	if d.action == Passed {
		return
	}
	x.t.edited.Add(1)
	x.t.sent.Add(int64(d.sent))
	switch {
	case d.action == Compacted && d.before > 0 && d.step != nil && d.step.prepared.PlanVersion == 1:
		x.t.before.Add(int64(d.before))
	case len(d.body) > 0:
		x.t.before.Add(int64(float64(d.sent) * float64(d.read.size) / float64(len(d.body))))
	}
}

// step is a request whose conversation is known. A further request for the same
// answer has a step of its own.
type step struct {
	id      string // of the log
	session *palimpsest.Session
	ask     palimpsest.Step
	read    *reading
	offered bool // the model was offered our tools
	// open are the lookups of an earlier try that the log ends with.
	open []*thread.Message
	// earlier are the logs that the conversation goes on from.
	earlier []string
	// prepared is what was last rendered; nil where nothing was.
	prepared *palimpsest.Prepared
}
