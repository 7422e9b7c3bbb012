package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// watchUsage reads an answer, while it passes, for the provider's count of the request, which corrects
// our own counts in this conversation. Requests far below the mark are not watched.
func (sn *sender) watchUsage(x *received, res *http.Response, d decision) {
	if d.step == nil || res.StatusCode != http.StatusOK || x.isArrayStream() || d.fellBack() || d.action == Passed && !x.isNearWindow(d) || d.step.parsed.hasProviderContext() {
		return
	}
	m := &usageWatcher{core: sn.core, x: x, step: d.step}
	if httpbody.IsStream(res) {
		m.stream = x.endpoint.dialect.NewStream()
		httpbody.RewriteEvents(res, sn.streamFault(x), m.event)
		return
	}
	header := res.Header.Clone()
	res.Body = &inspectedBody{ReadCloser: res.Body, inspect: func(raw []byte) {
		body, err := httpbody.Decompress(header, raw, httpbody.MaxAnswer, nil)
		if err != nil {
			return
		}
		if a, err := x.endpoint.dialect.DecodeAnswer(body); err == nil {
			m.save(a.Usage)
		}
	}}
}

// hasProviderContext reports whether the provider adds to the prompt, so that it counts more than the
// request: Gemini's caches, OpenAI's stored prompts.
func (r *parsedRequest) hasProviderContext() bool {
	return r.Has("cachedContent") || r.Has("prompt")
}

// usageWatcher saves the usage before the client gets its bytes, so that it is saved before the next
// request.
type usageWatcher struct {
	*core
	x      *received
	step   *step
	stream wire.Stream
	saved  bool
}

// inspectedBody is the body of an answer in one piece, inspected as a whole when reading begins. One
// that is too long is not.
type inspectedBody struct {
	io.ReadCloser
	inspect func(raw []byte)
	rest    io.Reader
}

func (b *inspectedBody) Read(p []byte) (int, error) {
	if b.rest == nil {
		raw, all, err := httpbody.Read[[]byte](b.ReadCloser, httpbody.MaxAnswer, nil)
		b.rest = httpbody.Rejoin(raw, err, b.ReadCloser, b.ReadCloser)
		if err == nil && all {
			b.inspect(raw)
		}
	}
	return b.rest.Read(p)
}

// event takes an event that may hold usage. That is saved at the end of the answer, when all that may
// speak against it is known; Chat has an event of its own for it. Since the other events are
// left out, some of these do not decode.
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

// saveUsageTimeout bounds how long an answer waits for its usage to be saved: another request of the
// conversation may hold it up.
const saveUsageTimeout = time.Second

// save tells the session what the provider counted.
func (m *usageWatcher) save(used wire.Usage) {
	if m.saved = true; used.Mixed || used.Input == 0 {
		return
	}
	s, of := m.step, m.step.prepared
	_, err := failsafe.Within(context.WithoutCancel(m.x.request.Context()), saveUsageTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.session.FinishStep(ctx, of, llm.Usage{Input: used.Input, Known: true})
	})
	// Being late does no harm: the next answer has its own.
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		m.emitFault(m.x, "usage", err, s)
	}
}
