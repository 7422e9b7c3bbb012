package proxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// emulator does what a request asks of its provider's own compaction, where the
// provider cannot. There is one for each API that has such a thing.
type emulator interface {
	// begin reads a request. Nil says that there is nothing to do. emulated says
	// that the upstream cannot compact; where it can, only items of ours are
	// replaced by what they stand for. An error is a fault of ours.
	begin(ctx context.Context, x *exchange, body []byte, emulated bool) (*emulation, error)
	// stripped is the request without what the upstream does not know and without
	// items of ours: what is sent where begin has failed. Nil leaves it as it is.
	stripped(x *exchange, body []byte, emulated bool) *emulation
}

// emulation is what became of a request. The zero value leaves it as it is.
type emulation struct {
	// answer is the whole answer, where the upstream is not asked.
	answer *http.Response
	// body and header go to the upstream in place of the client's; nil keeps them.
	body   []byte
	header http.Header
	// settled says that the request was made smaller as the client asked, so that
	// the policy leaves it alone unless it is refused as too long.
	settled bool
	// shape gives the upstream's answer, of status 200, the form that the client waits for; nil
	// leaves it as it is.
	shape func(*http.Response) (*http.Response, error)
}

// emulatorOf is the emulator of a request that may need one; nil where a look at
// the bytes shows that it does not.
func (x *exchange) emulatorOf(body []byte) (e emulator, emulated bool) {
	api := x.endpoint.dialect.API()
	emulated = slices.Contains(x.t.options.Emulate, api)
	if api == wire.Responses && bytes.Contains(body, []byte(`_response_id"`)) {
		return nativeResponses{}, emulated // it goes on with a history that the provider holds
	}
	if !bytes.Contains(body, []byte(native.Prefix)) && !(emulated && (x.endpoint.task == compaction || mentions(body) || namesBetas(x.request.Header))) {
		return nil, false
	}
	switch api {
	case wire.Anthropic:
		return nativeMessages{}, emulated
	case wire.Responses:
		return nativeResponses{}, emulated
	}
	return nil, false
}

// mentions reports whether a body may ask for native compaction.
func mentions(body []byte) bool {
	return bytes.Contains(body, []byte(`_management"`)) || bytes.Contains(body, []byte(`mpaction`)) && bytes.Contains(body, []byte(`"compaction`))
}

// emulate answers the request, with the emulation of what its API can do where
// the upstream cannot.
func (x *exchange) emulate() (*http.Response, error) {
	body, err := decoded(x.request.Header, x.original, x.t.options.MaxBody)
	if err != nil {
		return x.run() // nobody here can read it
	}
	e, emulated := x.emulatorOf(body)
	if e == nil {
		return x.run()
	}
	if v := x.guarded(x.request.Context(), "native", func(x *exchange, ctx context.Context) (v verdict, err error) {
		x.native, err = e.begin(ctx, x, body, emulated)
		return verdict{}, err
	}); v.reason != "" {
		x.guarded(x.request.Context(), "native", func(x *exchange, _ context.Context) (verdict, error) {
			x.native = e.stripped(x, body, emulated)
			return verdict{}, nil
		})
	}
	m := x.native
	if m == nil {
		return x.run()
	}
	if m.answer != nil {
		x.t.requested(x.endpoint)
		m.answer.Header.Set(ActionHeader, Emulated)
		return m.answer, nil
	}
	if m.header != nil {
		r := *x.request
		r.Header = m.header
		x.request = &r
	}
	if m.body != nil {
		x.original = m.body
		x.request = withBody(x.request)
	}
	res, err := x.run()
	if err != nil {
		return nil, err
	}
	if m.body != nil && res.Header.Get(ActionHeader) == Passed {
		res.Header.Set(ActionHeader, Emulated)
		if m.settled && x.endpoint.task == generate {
			x.t.edited.Add(1)
			x.t.before.Add(int64(len(body)) / usualBytes)
			x.t.sent.Add(int64(len(m.body)) / usualBytes)
		}
	}
	if m.shape != nil && res.StatusCode == http.StatusOK {
		return m.shape(res)
	}
	return res, nil
}

// usualBytes is about how many bytes a token has, for totals of what nobody has
// counted.
const usualBytes = 4

// withBody is a request whose body stands in the exchange, without compression.
func withBody(r *http.Request) *http.Request {
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Del("Content-Encoding")
	return &out
}

// answering is an answer that was made here.
func answering(r *http.Request, status int, kind, body string) *http.Response {
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
