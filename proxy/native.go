package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// emulator does what a request asks of its provider's own compaction, where the
// provider cannot. There is one for each API that has such a thing.
type emulator interface {
	// apply reads a request. emulated says
	// that the upstream cannot compact; where it can, only items of ours are
	// replaced by what they stand for. An error is a fault of ours.
	apply(ctx context.Context, body string, emulated bool) (emulation, error)
	// fallback is the request without what the upstream does not know and without
	// items of ours: what is sent where apply has failed.
	fallback(body string, emulated bool) emulation
}

// emulation is what became of a request. The zero value leaves it as it is.
type emulation struct {
	// answer is the whole answer, where the upstream is not asked.
	answer *http.Response
	// body and header go to the upstream in place of the client's; empty and nil keep
	// them.
	body   string
	header http.Header
	// responses is what a request of the Responses API asks beside; nil for others.
	responses *responsesRequest
	// providerState is the history that the provider holds for the client; nil where the request
	// has its own.
	providerState *providerState
	// edited says that the request was made smaller as the client asked, so that
	// the policy leaves it alone unless it is refused as too long.
	edited bool
	// reshape gives the upstream's answer, of status 200, the form that the client waits for; nil
	// leaves it as it is.
	reshape func(*http.Response)
}

// The marks of requests that go on with a history which the provider holds. A search for a text
// is fast where that begins with a rare letter.
const (
	threadMark       = `"thread"`
	responseMark     = `_response_id"`
	conversationMark = `"conversation"`
	conversationEnd  = `versation"`
	longestMark      = 32 // bytes; native.Prefix and those of mayAskCompaction have less
)

// emulatorOf is the emulator of a request that may need one; nil where a look at
// the bytes shows that it does not. Only those are searched that the step before did not have.
func (x *exchange) emulatorOf() (e emulator, emulated bool) {
	api := x.endpoint.dialect.API()
	if api != wire.Anthropic && api != wire.Responses {
		return nil, false
	}
	emulated = slices.Contains(x.t.options.Emulate, api)
	x.similar = x.t.requests.Similar(api, x.plainBody)
	body := x.similar.Unsearched(longestMark)
	ours, asks := strings.Contains(body, native.Prefix), emulated && mayAskCompaction(body)
	held := api == wire.Anthropic && strings.Contains(body, threadMark) ||
		api == wire.Responses && (strings.Contains(body, responseMark) || strings.Contains(body, conversationEnd) && strings.Contains(body, conversationMark))
	x.similar.Unmarked = !ours && !asks && !held
	switch {
	case held && api == wire.Responses:
		return nativeResponses{x}, emulated
	case held && gjson.Get(x.plainBody, "thread").IsObject():
		return messageThreads{x}, emulated
	case !ours && !asks && !(emulated && (x.endpoint.task == compaction || namesBetas(x.request.Header))):
		return nil, false
	case api == wire.Responses:
		return nativeResponses{x}, emulated
	}
	return nativeMessages{x}, emulated
}

// mayAskCompaction reports whether a body may ask for native compaction.
func mayAskCompaction(body string) bool {
	return strings.Contains(body, `_management"`) || strings.Contains(body, `mpaction`) && strings.Contains(body, `"compaction`)
}

// runWithEmulation answers the request, with the emulation of what its API can do where
// the upstream cannot.
func (x *exchange) runWithEmulation() (*http.Response, error) {
	if x.decompressErr != nil {
		return x.run()
	}
	body := x.plainBody
	e, emulated := x.emulatorOf()
	if e == nil {
		return x.run()
	}
	ctx := x.request.Context()
	m, err := runWithin(ctx, x.t.options.Deadline, func(ctx context.Context) (emulation, error) { return e.apply(ctx, body, emulated) })
	if err != nil {
		x.emitFault("native", err, nil)
		// What goes out without this is refused: it takes its time, however short the deadline is.
		patience := max(x.t.options.Deadline, defaultDeadline)
		m, err = runWithin(ctx, patience, func(context.Context) (emulation, error) { return e.fallback(body, emulated), nil })
		if err != nil {
			x.emitFault("native", err, nil)
		}
	}
	if m.answer != nil {
		x.t.countRequest(x.endpoint)
		m.answer.Header.Set(ActionHeader, Emulated)
		return m.answer, nil
	}
	next := *x
	next.emulation = m
	if m.header != nil {
		next.request = withHeader(next.request, m.header)
	}
	if m.body != "" {
		next.body, next.plainBody, next.request = m.body, m.body, withoutEncoding(next.request)
	}
	res, err := next.run()
	if err != nil {
		return nil, err
	}
	if m.body != "" && res.Header.Get(ActionHeader) == Passed {
		res.Header.Set(ActionHeader, Emulated)
		if m.edited && x.endpoint.task == generate {
			x.t.edited.Add(1)
			x.t.tokensBefore.Add(int64(len(body)) / bytesPerToken)
			x.t.tokensSent.Add(int64(len(m.body)) / bytesPerToken)
		}
	}
	if m.reshape != nil && res.StatusCode == http.StatusOK {
		m.reshape(res)
	}
	return res, nil
}

// bytesPerToken is about how many bytes a token has, for totals of what nobody has
// counted.
const bytesPerToken = 4

// withoutEncoding is a request whose body has no compression any more.
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

// newAnswer is an answer that was made here.
func newAnswer(r *http.Request, status int, kind, body string) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {kind}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}

// The types of content of answers.
const (
	jsonKind   = "application/json"
	streamKind = "text/event-stream; charset=utf-8"
)
