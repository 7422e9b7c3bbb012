package proxy

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/render"
)

// refusal is why a provider refused a request. The kind is empty if it did not, or if that cannot be
// read; text is what the provider wrote.
type refusal struct {
	kind llm.Kind
	text string
}

// failureOf is the error of a request that the provider did not take, for the log of whoever runs the
// proxy: its kind and status, and nothing that was said.
func failureOf(res *http.Response, why refusal) error {
	byStatus := llm.Classify("", res.StatusCode, []byte("unread")) // a body without a word says that it is empty
	return &llm.APIError{Kind: cmp.Or(why.kind, byStatus, llm.ErrResponse), Status: res.StatusCode}
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// readRefusal reads why a provider refused a request, and keeps the window that it names. The answer
// can still be read afterwards.
func (sn *sender) readRefusal(x *received, res *http.Response, d decision) (why refusal) {
	if res.StatusCode < 400 {
		why = sn.earlyRefusal(x, res, d)
	} else {
		why = refusalByStatus(x.endpoint.dialect.API(), res)
	}
	if why.kind == llm.ErrOverflow {
		sn.models.saveWindow(x, x.modelName(d.parsed), windowInRefusal(why.text))
	}
	return why
}

// refusalByStatus reads a refusal with a status of its own.
func refusalByStatus(api string, res *http.Response) refusal {
	said, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	res.Body = httpbody.Rejoin(said, err, res.Body, res.Body)
	if err != nil || res.StatusCode == http.StatusTooManyRequests && len(said) == 0 {
		return refusal{}
	}
	text, err := httpbody.Decompress(res.Header, string(said), maxRefusal, nil)
	if err != nil {
		text = ""
		if res.StatusCode != http.StatusRequestEntityTooLarge {
			return refusal{}
		}
	}
	return classify(api, res, text)
}

func classify(api string, res *http.Response, text string) refusal {
	return refusal{llm.Classify(api, res.StatusCode, []byte(text)), text}
}

// minStreamCheck is the size of a body, in bytes, from which its stream is checked for a
// refusal: a smaller one fits every window.
const minStreamCheck = 64 << 10

func (x *received) isLarge() bool { return max(len(x.body), len(x.plainBody)) >= minStreamCheck }

// isArrayStream reports whether the answer comes piece by piece as one JSON array (Gemini without
// alt=sse): nobody may wait for its end.
func (x *received) isArrayStream() bool { return !x.endpoint.dialect.CanReadAnswer(x.request, nil) }

// earlyRefusal finds a refusal at the beginning of an answer with status 200. The answer can
// still be read from its beginning afterwards.
func (sn *sender) earlyRefusal(x *received, res *http.Response, d decision) refusal {
	if res.StatusCode != http.StatusOK || x.isArrayStream() || d.step == nil && !x.isLarge() || res.Header.Get("Content-Encoding") != "" {
		return refusal{}
	}
	kind := res.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "text/event-stream"):
		return refusalInStream(x.endpoint.dialect.API(), res)
	case strings.HasPrefix(kind, "application/json") && res.ContentLength < maxError:
		// Gateways pass on the error of a provider behind them.
		said, err := io.ReadAll(io.LimitReader(res.Body, maxError))
		res.Body = httpbody.Rejoin(said, err, res.Body, res.Body)
		if len(said) < maxError && gjson.GetBytes(said, "error").IsObject() {
			return classify(x.endpoint.dialect.API(), res, string(said))
		}
	}
	return refusal{}
}

// maxError is the largest body, in bytes, that is taken for an error.
const maxError = 8 << 10

// refusalInStream looks at the first event that is more than a prelude.
func refusalInStream(api string, res *http.Response) (why refusal) {
	stream := sse.NewReader(res.Body, 0)
	var seen []byte
	var failed error
	for len(seen) < maxRefusal {
		e, err := httpbody.NextEvent(stream)
		seen = append(seen, e.Raw...)
		if err != nil {
			failed = err
			break
		}
		if isPrelude(e) {
			continue
		}
		if isError(e) {
			why = classify(api, res, e.Data)
		}
		break
	}
	res.Body = httpbody.Rejoin(seen, failed, stream.Rest(), res.Body)
	return why
}

func isError(e sse.Event) bool {
	if v := gjson.Get(e.Data, "error"); v.Exists() && v.Type != gjson.Null {
		return true
	}
	return e.Name == "error" || gjson.Get(e.Data, "response.error").IsObject()
}

// isPrelude reports whether an event comes before anything that the model wrote.
func isPrelude(e sse.Event) bool {
	switch gjson.Get(e.Data, "type").Str {
	case "response.created", "response.in_progress", "response.queued", "ping":
		return true
	}
	return strings.TrimSpace(e.Data) == ""
}

// retryKind is how a refused request is sent again. Each way is tried once, in this order.
type retryKind int

const (
	noRetry               retryKind = iota
	retryWholeHistory               // the provider does not know the history that the request names
	retryPlanned                    // the request was too long as it came, and its conversation has a plan
	retrySmaller                    // the request was too long
	retryReasoning                  // the provider found ours invalid: perhaps it demands reasoning everywhere
	retryOriginal                   // the provider found ours invalid: the client's own bytes, whatever the answer
	retryWithoutReasoning           // reasoning that was made for our prompt is not valid in the client's
)

// reasoningRefusal matches refusals that are about reasoning.
var reasoningRefusal = lazyregexp.New(`(?i)thinking|signature|encrypted|reasoning`)

// nextTry decides what to send after a refusal. again is false if nothing helps; the
// decision is then the refused one.
func (st *stepper) nextTry(ctx context.Context, x *received, d decision, res *http.Response, why refusal) (next decision, again bool) {
	invalid := why.kind == llm.ErrInvalid
	switch {
	case d.retry < retryWholeHistory && x.isHistoryRefused(res, d, why):
		next = st.withWholeHistory(ctx, x)
		next.retry = retryWholeHistory
	case (d.retry < retrySmaller || d.retry == retryReasoning) && why.kind == llm.ErrOverflow:
		next = st.decideOrForward(ctx, x, "overflow", func(ctx context.Context) (decision, error) { return st.compactAfterOverflow(ctx, x, d) })
		if next.action == Passed {
			d.reason = cmp.Or(next.reason, d.reason)
		}
		next.retry = retrySmaller
		if d.step == nil && next.step != nil && next.step.prepared.Compacted == nil {
			next.retry = retryPlanned
		}
	case d.retry < retryReasoning && invalid && d.action != Passed && st.mayWantReasoning(ctx, x, d, why):
		next = st.decideOrForward(ctx, x, "reasoning", func(ctx context.Context) (decision, error) { return st.withReasoningEverywhere(ctx, x, d) })
		if next.action == Passed { // it would be the same again
			d.retry = retryReasoning
			return st.nextTry(ctx, x, d, res, why)
		}
		next.retry = retryReasoning
	case d.retry < retryOriginal && invalid && d.action != Passed:
		return decision{action: Passed, reason: reasonRefused, parsed: d.parsed, step: d.step, retry: retryOriginal}, true
	case d.retry < retryWithoutReasoning && invalid && (d.step != nil || d.reason == reasonFault || d.reason == reasonNative) && reasoningRefusal().MatchString(why.text):
		next = st.decideOrForward(ctx, x, "reasoning", func(ctx context.Context) (decision, error) { return st.withoutReasoning(ctx, x, d.parsed) })
		next.retry = retryWithoutReasoning
	default:
		return d, false
	}
	if next.action == Passed {
		return d, false // nothing better than what was refused could be made
	}
	return next, true
}

// withoutReasoning is the request without any reasoning of the model.
func (st *stepper) withoutReasoning(ctx context.Context, x *received, r *parsedRequest) (decision, error) {
	r, reason, err := st.parser.parsedOr(ctx, x, r)
	if r == nil {
		return forward(reason), err
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
