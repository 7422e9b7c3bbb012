package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/jsonedit"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/wire"
)

func withBody(r *http.Request, size int, body func() io.Reader) *http.Request {
	out := new(*r)
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(body()), nil }
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(body()), int64(size), nil
	if values := r.Header["Content-Length"]; len(values) > 0 {
		out.Header = out.Header.Clone()
		out.Header.Set("Content-Length", strconv.Itoa(size))
	}
	return out
}

// isAnswerStored reports whether the provider keeps the answer, and the history before it is
// known here, so that a later request can continue it.
func (x *received) isAnswerStored(d decision) bool {
	switch h := x.held; {
	case x.endpoint.task != generate:
		return false
	case h != nil:
		return h.stored && (h.name == "" || h.known)
	case x.endpoint.dialect.API() != wire.Responses || x.request.Header.Get("Content-Encoding") != "":
		return false
	case d.parsed != nil:
		return d.parsed.Members["store"].Type != gjson.False
	}
	return !storeFalse().MatchString(x.body.String())
}

// storeFalse tells the provider not to keep a response.
var storeFalse = lazyregexp.New(`"store"\s*:\s*false`)

// isNearWindow reports whether a request comes near the model's window.
func (x *received) isNearWindow(d decision) bool {
	return d.step != nil && (d.step.input.Window == 0 || 2*d.tokensBefore > min(d.step.input.Window, 200_000)) // a larger one may be wrong
}

func (x *received) isLarge() bool { return max(x.body.Len(), x.plain.Len()) >= minStreamCheck }

// minStreamCheck is the size of a body, in bytes, from which its stream is checked for a
// refusal: a smaller one fits every window.
const minStreamCheck = 64 << 10

// isArrayStream reports whether the answer comes piece by piece as one JSON array (Gemini without alt=sse): nobody may wait for its end.
func (x *received) isArrayStream() bool { return !x.endpoint.dialect.CanReadAnswer(x.request, nil) }

// fellBack reports whether the client's own request goes out in place of ours.
func (d decision) fellBack() bool {
	return d.step != nil && (d.reason == reasonRefused || d.reason == reasonFault || d.reason == reasonNoReasoning)
}

// send sends the request as it was decided, and has its answer read for usage.
func (a *asker) send(x *received, d decision) (*http.Response, error) {
	size, body := len(d.body), func() io.Reader { return bytes.NewReader(d.body) }
	if d.action == Passed {
		own := a.histories.bodyForProvider(x)
		size, body = own.Len(), own.Reader
	}
	out := withBody(x.request, size, body)
	if d.action != Passed || x.isNearWindow(d) || x.endpoint.task == generate && x.isLarge() || d.fellBack() || x.isAnswerStored(d) && !httpbody.AcceptsOnlyReadable(out.Header) {
		httpbody.AcceptReadable(out) // the answer is read here, or it may be an overflow that has to be read
	}
	if d.action != Passed {
		out.Header.Del("Content-Encoding")
		if x.held != nil {
			out.Header = httpbody.WithoutListed(out.Header, "Anthropic-Beta", func(beta string) bool { return beta == native.BetaThreads })
		}
	}
	res, err := sendToProvider(a.options.Base, out)
	if err == nil && x.endpoint.task == generate {
		a.watchUsage(x, res, d)
	}
	return res, err
}

// sendToProvider sends a request to the provider, over its connections.
func sendToProvider(base http.RoundTripper, r *http.Request) (*http.Response, error) {
	res, err := base.RoundTrip(r)
	if err != nil {
		return nil, &connectionError{error: err, side: providerSide}
	}
	if res.Header == nil {
		res.Header = http.Header{}
	}
	return res, nil
}

// bodyForProvider is the client's body, with the previous response named by the provider's id.
func (hs *histories) bodyForProvider(x *received) *identify.Body {
	if x.plain.Unmarked || x.endpoint.dialect.API() != wire.Responses || x.request.Header.Get("Content-Encoding") != "" {
		return x.body // it names no response
	}
	last, other := hs.providerIDs.Get(gjson.Get(x.body.String(), "previous_response_id").Str)
	if !other {
		return x.body
	}
	return identify.NewBody(jsonedit.Set(x.body.String(), "previous_response_id", rawjson.Quote(last)))
}

// watchUsage reads an answer, while it passes, for the provider's count of the request, which corrects
// our own counts in this conversation. Requests far below the mark are not watched.
func (a *asker) watchUsage(x *received, res *http.Response, d decision) {
	if d.step == nil || res.StatusCode != http.StatusOK || x.isArrayStream() || d.fellBack() || d.action == Passed && (d.step.countsWhole || !x.isNearWindow(d)) || d.step.parsed.Has("cachedContent") || d.step.parsed.Has("prompt") { // for these the provider adds to the prompt
		return
	}
	m := &usageWatcher{models: a.models, x: x, step: d.step}
	if httpbody.IsStream(res) {
		m.stream = x.endpoint.dialect.NewStream()
		httpbody.RewriteEvents(res, func(err error) { a.emitFault(x, "stream", err, nil) }, m.event)
		return
	}
	header := res.Header.Clone()
	res.Body = &inspectedBody{ReadCloser: res.Body, inspect: func(raw []byte) {
		body, err := httpbody.Decompress(header, raw, httpbody.MaxAnswer, nil)
		if err != nil {
			return
		}
		if a, err := x.endpoint.dialect.DecodeAnswer(body); err == nil {
			m.save(a.Usage, a.Stop)
		}
	}}
}

// usageWatcher saves the usage before the client gets its bytes, so that it is saved before the next
// request.
type usageWatcher struct {
	*models
	x      *received
	step   *step
	stream wire.Stream
	saved  bool
}

// event takes an event that tells of usage. That is saved at the end of the answer, when all that may
// speak against it is known; Chat has an event of its own for it. Since the other events are
// left out, some of these do not decode.
func (m *usageWatcher) event(e sse.Event) []byte {
	if m.saved || !slices.ContainsFunc(usageEvents, func(mark string) bool { return strings.Contains(e.Data, mark) }) {
		return e.Raw
	}
	now, err := m.stream.Event(e.Data)
	if err == nil && now.Usage.Known && (now.Stop != "" || m.x.endpoint.dialect.API() == wire.Chat) {
		m.save(now.Usage, now.Stop)
	}
	return e.Raw
}

// usageEvents mark the events that hold usage, and those that say whether tools of the provider ran, after which
// the model was asked again: blocks at Anthropic, and items of Responses, which the end need not repeat.
var usageEvents = []string{`"usage`, `"content_block_start"`, `"response.output_item.done"`}

// save tells the session what the provider counted. An answer that the end of the window cut off says how large that is.
func (m *usageWatcher) save(used wire.Usage, stop wire.Stop) {
	if m.saved = true; used.Mixed || used.Input == 0 {
		return
	} else if stop == wire.StopContext {
		m.saveWindow(m.x, m.x.modelName(m.step.parsed), used.Input+used.Output)
	}
	s, of := m.step, m.step.prepared
	_, err := failsafe.Within(context.WithoutCancel(m.x.request.Context()), saveUsageTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.session.FinishStep(ctx, of, wire.Usage{Input: used.Input, Known: true})
	})
	// Being late does no harm: the next answer has its own.
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		m.emitFault(m.x, "usage", err, s)
	}
}

// saveUsageTimeout bounds how long an answer waits for its usage to be saved: another request of the
// conversation may hold it up.
const saveUsageTimeout = time.Second

// inspectedBody is the body of an answer in one piece, inspected as a whole when reading begins. One
// that is too long is not.
type inspectedBody struct {
	io.ReadCloser
	inspect func(raw []byte)
	rest    io.Reader
}

func (b *inspectedBody) Read(p []byte) (int, error) {
	if b.rest == nil {
		raw, all, err := httpbody.Read[[]byte](b.ReadCloser, httpbody.MaxAnswer, 0, nil)
		b.rest = httpbody.Rejoin(raw, err, b.ReadCloser, b.ReadCloser)
		if err == nil && all {
			b.inspect(raw)
		}
	}
	return b.rest.Read(p)
}
