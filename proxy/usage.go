package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// watchUsage reads an answer, while it passes, for what the provider counted of
// the request: that corrects the counter for the thread. What stays far below
// every mark is not looked into.
func (x *exchange) watchUsage(res *http.Response, d decision) {
	if d.step == nil || res.StatusCode != http.StatusOK || d.fellBack() || d.action == Passed && !x.isNearWindow(d) || d.step.parsed.hasProviderContext() {
		return
	}
	m := &usageWatcher{x: x, step: d.step}
	if isStream(res) {
		m.stream = x.endpoint.dialect.NewStream()
		x.rewriteEvents(res, m.event)
		return
	}
	header := res.Header.Clone()
	res.Body = &inspectedBody{ReadCloser: res.Body, inspect: func(raw []byte) {
		body, err := decompress(header, raw, maxAnswer, nil)
		if err != nil {
			return
		}
		if a, err := x.endpoint.dialect.DecodeAnswer(body); err == nil {
			m.save(a.Usage)
		}
	}}
}

// hasProviderContext reports whether the provider puts into the prompt what the request does
// not hold, so that its count is of something else: Gemini's caches, OpenAI's stored
// prompts.
func (r *parsedRequest) hasProviderContext() bool {
	return r.Has("cachedContent") || r.Has("prompt")
}

// usageWatcher saves the usage before the client is given the bytes that tell of it, so that no
// further request can be there first.
type usageWatcher struct {
	x      *exchange
	step   *step
	stream wire.Stream
	saved  bool
}

// inspectedBody is the body of an answer in one piece, which is looked at as a whole when its
// reading begins. What is longer than anybody's answer passes.
type inspectedBody struct {
	io.ReadCloser
	inspect func(raw []byte)
	rest    io.Reader
}

func (b *inspectedBody) Read(p []byte) (int, error) {
	if b.rest == nil {
		raw, all, err := readBody[[]byte](b.ReadCloser, maxAnswer, nil)
		b.rest = rejoinBody(raw, err, b.ReadCloser, b.ReadCloser)
		if err == nil && all {
			b.inspect(raw)
		}
	}
	return b.rest.Read(p)
}

// event takes in an event that may tell of usage. It is saved at the end of the
// answer, when all is known that could speak against it; Chat tells of it in an
// event of its own. Where the rest of the answer is left out, not every piece of it
// fits.
func (m *usageWatcher) event(e sse.Event) []byte {
	if m.saved || !strings.Contains(e.Data, `"usage`) {
		return e.Raw
	}
	now, err := m.stream.Event(e.Data)
	if err == nil && now.Usage.Known && (now.Stop != "" || m.x.endpoint.dialect.API() == wire.Chat) {
		m.save(now.Usage)
	}
	return e.Raw
}

// saveUsageTimeout bounds how long an answer waits until its usage is saved: somebody
// else may be at work on the thread.
const saveUsageTimeout = time.Second

// save tells the thread what the provider counted, if it was of the prompt that
// the thread handed out last.
func (m *usageWatcher) save(used wire.Usage) {
	if m.saved = true; used.Mixed || used.Input == 0 {
		return
	}
	s, of := m.step, m.step.prepared
	_, err := runWithin(context.WithoutCancel(m.x.request.Context()), saveUsageTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.session.FinishStep(ctx, of, llm.Usage{Input: used.Input, Known: true})
	})
	// One that comes too late is of no harm: the next answer tells of its own.
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		m.x.emitFault("usage", err, s)
	}
}
