package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// emulator does what a request asks of its provider beside an answer: to compact the
// conversation, or to continue a history that the provider holds. Each API that has such
// things has its own.
type emulator interface {
	// apply reads the exchange's request. Where the upstream compacts by itself, only
	// compactions that were made here are replaced by what they stand for. A *native.Refusal is
	// the answer; any other error is a fault of ours.
	apply(ctx context.Context) (emulation, error)
	// fallback is sent if apply fails: the request without compactions of ours, and without
	// what the upstream does not know.
	fallback() emulation
}

// emulation is what an emulator made of a request. The zero value leaves it as it is.
type emulation struct {
	// answer is the whole answer, if the upstream need not be asked.
	answer *http.Response
	// body and header go to the upstream in place of the client's; empty and nil keep those.
	body   string
	header http.Header
	// bytesBefore is the size of the client's body, decompressed.
	bytesBefore int
	// compacts says that a request of the Responses API has its provider compact by itself,
	// and that this is done here. threshold is from how many tokens on; 0 leaves it to the
	// policy.
	compacts  bool
	threshold int
	// held is the history that the provider holds for the client; nil if the request has its
	// own.
	held *heldHistory
	// edited says that the edits which the client asked for made the request smaller. The
	// policy then leaves it alone, unless the provider refuses it as too long.
	edited bool
	// reshape gives the upstream's answer, of status 200, the form that the client expects;
	// nil leaves it as it is.
	reshape func(*http.Response)
}

// The marks of requests that continue a history which the provider holds. A search is fast
// for a text that begins with a rare letter.
const (
	threadMark       = `"thread"`
	responseMark     = `_response_id"`
	conversationMark = `"conversation"`
	conversationEnd  = `versation"`
	longestMark      = 32 // bytes; native.Prefix and the marks of mayAskCompaction are shorter
)

// emulated reports whether native compaction of the request's API is done here, since its
// upstream cannot.
func (x *exchange) emulated() bool {
	return slices.Contains(x.t.options.Emulate, x.endpoint.dialect.API())
}

// emulator returns the one for the request; nil if a look at the bytes shows that it needs none.
// Bytes that the step before had too are not searched again: it sets x.similar.
func (x *exchange) emulator() emulator {
	api, emulated := x.endpoint.dialect.API(), x.emulated()
	if api != wire.Anthropic && api != wire.Responses {
		return nil
	}
	x.similar = x.t.requests.Similar(api, x.plainBody)
	body := x.similar.Unsearched(longestMark)
	ours, asks := strings.Contains(body, native.Prefix), emulated && mayAskCompaction(body)
	held := api == wire.Anthropic && strings.Contains(body, threadMark) ||
		api == wire.Responses && (strings.Contains(body, responseMark) || strings.Contains(body, conversationEnd) && strings.Contains(body, conversationMark))
	x.similar.Unmarked = !ours && !asks && !held
	switch {
	case held && api == wire.Responses:
		return nativeResponses{x}
	case held && gjson.Get(x.plainBody, "thread").IsObject():
		return messageThreads{nativeMessages{x}}
	case !ours && !asks && !(emulated && (x.endpoint.task == compaction || namesBetas(x.request.Header, emulatedBetas...))):
		return nil
	case api == wire.Responses:
		return nativeResponses{x}
	}
	return nativeMessages{x}
}

func mayAskCompaction(body string) bool {
	return strings.Contains(body, `_management"`) || strings.Contains(body, `mpaction`) && strings.Contains(body, `"compaction`)
}

// emulate returns the exchange to go on with, or the answer if the provider need not be asked.
func (x *exchange) emulate() (next *exchange, answer *http.Response) {
	if x.decompressErr != nil {
		return x, nil
	}
	own := *x
	x = &own
	e := x.emulator()
	if e == nil {
		return x, nil
	}
	ctx := x.request.Context()
	m, err := failsafe.Within(ctx, x.t.options.Deadline, e.apply)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		m, err = emulation{answer: refusalAnswer(x.request, refusal)}, nil
	}
	if err != nil {
		x.emitFault("native", err, nil)
		// The request would be refused without this, however short the deadline is.
		patience := max(x.t.options.Deadline, defaultDeadline)
		m, err = failsafe.Within(ctx, patience, func(context.Context) (emulation, error) { return e.fallback(), nil })
		if err != nil {
			x.emitFault("native", err, nil)
		}
	}
	if m.answer != nil {
		x.t.countRequest(x.endpoint)
		m.answer.Header.Set(ActionHeader, Emulated)
		return nil, m.answer
	}
	changed := *x // the emulator may still be at work on x
	m.bytesBefore = len(x.plainBody)
	changed.emulation = m
	if m.header != nil {
		changed.request = withHeader(changed.request, m.header)
	}
	if m.body != "" {
		changed.body, changed.plainBody, changed.request = m.body, m.body, withoutEncoding(changed.request)
	}
	return &changed, nil
}

func withoutEncoding(r *http.Request) *http.Request {
	h := r.Header.Clone()
	h.Del("Content-Encoding")
	return withHeader(r, h)
}

func withHeader(r *http.Request, h http.Header) *http.Request {
	out := *r
	out.Header = h
	return &out
}

func refusalAnswer(r *http.Request, why *native.Refusal) *http.Response {
	return httpbody.NewAnswer(r, http.StatusBadRequest, httpbody.JSON, why.Body())
}
