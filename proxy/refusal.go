package proxy

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/pattern"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/render"
)

// refusal is why a provider refused a request. The kind is empty when it did not, or
// when there is nothing to do about it; said is what it wrote.
type refusal struct {
	kind llm.Kind
	text string
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// readRefusal reads why a provider refused a request. The answer can still be read
// afterwards.
func (x *exchange) readRefusal(res *http.Response, d decision) refusal {
	if res.StatusCode < 400 {
		return x.earlyRefusal(res, d)
	}
	said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = rejoinBody(said, err, res.Body, res.Body)
	if err != nil || res.StatusCode == http.StatusTooManyRequests && len(said) == 0 {
		return refusal{}
	}
	text, err := decompress(res.Header, string(said), maxRefusal, nil)
	if err != nil {
		text = ""
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			return refusal{}
		}
	}
	why := refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, []byte(text)), text}
	if why.kind == llm.ErrOverflow {
		if window := windowInRefusal(text); window > 0 {
			x.saveWindow(x.modelName(d.parsed), window)
		}
	}
	return why
}

// minStreamCheck is the size of a body, in bytes, from which a stream is looked
// into for a refusal: a smaller one fits every window.
const minStreamCheck = 64 << 10

// earlyRefusal finds a refusal at the beginning of an answer whose status says that all
// is well. The answer can still be read from its beginning afterwards.
func (x *exchange) earlyRefusal(res *http.Response, d decision) refusal {
	if res.StatusCode != http.StatusOK || d.step == nil && len(x.body) < minStreamCheck || res.Header.Get("Content-Encoding") != "" {
		return refusal{}
	}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return x.refusalInStream(res)
	case strings.HasPrefix(kind, "application/json") && res.ContentLength < maxError:
		// Gateways hand on what a provider behind them said.
		said, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		res.Body = rejoinBody(said, err, res.Body, res.Body)
		if len(said) < maxError && gjson.GetBytes(said, "error").IsObject() {
			return refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, said), string(said)}
		}
	}
	return refusal{}
}

// maxError is the size of a body, in bytes, up to which it can be nothing but an
// error.
const maxError = 8 << 10

// refusalInStream looks at the first event that says anything.
func (x *exchange) refusalInStream(res *http.Response) (why refusal) {
	stream := sse.NewReader(res.Body, 0)
	var seen []byte
	var failed error
	for len(seen) < maxRefusal {
		e, err := nextEvent(stream)
		seen = append(seen, e.Raw...)
		if err != nil {
			failed = err
			break
		}
		if isPrelude(e) {
			continue
		}
		if isError(e) {
			why = refusal{llm.Classify(x.endpoint.dialect.API(), res.StatusCode, []byte(e.Data)), e.Data}
		}
		break
	}
	res.Body = rejoinBody(seen, failed, stream.Rest(), res.Body)
	return why
}

// isError reports whether an event says that the answer has failed.
func isError(e sse.Event) bool {
	if v := gjson.Get(e.Data, "error"); v.Exists() && v.Type != gjson.Null {
		return true
	}
	return e.Name == "error" || gjson.Get(e.Data, "response.error").IsObject()
}

// isPrelude reports whether an event comes before the model has begun to answer.
func isPrelude(e sse.Event) bool {
	switch gjson.Get(e.Data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.Data) == ""
}

// retryKind is how a refused request is sent again. Each is tried once, in this order.
type retryKind int

const (
	noRetry               retryKind = iota
	retryWholeHistory               // in the place of its name, which the provider does not know
	retrySmaller                    // of what was too long
	retryOriginal                   // the client's, where the provider finds ours invalid; their answer counts, whatever it is
	retryWithoutReasoning           // reasoning that was made for a prompt of ours does not hold for the client's
)

// reasoningRefusal finds out whether a refusal is about reasoning.
var reasoningRefusal = pattern.New(`(?i)thinking|signature|encrypted|reasoning`)

// nextTry decides what is sent after a refusal: the same decision where nothing helps, and one that
// passes where it failed.
func (x *exchange) nextTry(ctx context.Context, d decision, res *http.Response, why refusal) (next decision) {
	invalid := why.kind == llm.ErrInvalid
	switch {
	case d.retry < retryWholeHistory && x.isHistoryRefused(res, d, why):
		next = x.withWholeHistory(ctx)
		next.retry = retryWholeHistory
	case d.retry < retrySmaller && why.kind == llm.ErrOverflow:
		next = x.decideOrForward(ctx, "overflow", func(ctx context.Context) (decision, error) { return x.compactAfterOverflow(ctx, d) })
		next.retry = retrySmaller
	case d.retry < retryOriginal && invalid && d.action != Passed:
		x.emitFault("invalid", llm.ErrInvalid, d.step)
		next = decision{action: Passed, reason: "refused", parsed: d.parsed, step: d.step, retry: retryOriginal}
	case d.retry < retryWithoutReasoning && invalid && (d.step != nil || d.reason == "fault" || d.reason == "native") && reasoningRefusal().MatchString(why.text):
		next = x.decideOrForward(ctx, "reasoning", func(ctx context.Context) (decision, error) { return x.withoutReasoning(ctx, d.parsed) })
		next.retry = retryWithoutReasoning
	default:
		return d
	}
	return next
}

func (x *exchange) withoutReasoning(ctx context.Context, r *parsedRequest) (decision, error) {
	if r == nil {
		var reason string
		var err error
		if r, reason, err = x.parseRequest(ctx); err != nil || r == nil {
			return forward(reason), err
		}
	}
	profile := render.For(x.endpoint.dialect.API())
	profile.BoundReasoning = true
	p := *r.Prompt
	p.Messages = nil
	for _, m := range r.Prompt.Messages {
		if m = profile.Translate(m, true); len(m.Parts) > 0 {
			p.Messages = append(p.Messages, m)
		}
	}
	body, err := x.endpoint.dialect.Encode(&p)
	if err != nil {
		return decision{}, err
	}
	return decision{action: Planned, reason: "without-reasoning", parsed: r, body: body}, nil
}
