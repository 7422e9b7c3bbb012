package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// asker gets the provider's answer.
type asker struct {
	*core
	models    *models
	stepper   *stepper
	histories *histories
}

// ask sends a request, and sends it again in another way if the provider refuses it for a reason that
// can be mended here. It returns the decision that was answered, and why that was refused.
func (a *asker) ask(ctx context.Context, x *received, d decision) (decision, *http.Response, refusal, error) {
	var invalid *decision // ours, which the provider found invalid
	for {
		res, err := a.send(x, d)
		if err != nil {
			if d.action == Recovered {
				d.action = Compacted
			}
			return d, res, refusal{}, err
		}
		if x.endpoint.task != generate {
			return d, res, refusal{}, nil
		}
		why := x.readRefusal(res, d)
		accepted := why.kind == "" && res.StatusCode == http.StatusOK
		a.learn(x, d, why, accepted, invalid)
		if accepted {
			return d, res, why, nil
		}
		next, again := a.stepper.decideRetry(ctx, x, d, res, why)
		if !again {
			next.failed = failureOf(res, why)
			if slices.Contains(uncured, why.kind) {
				a.undoUseless(x, next.step)
			}
			if next.action == Recovered {
				next.action, next.reason = Compacted, reasonRefused
			}
			if llm.IsOverflow(why.kind) {
				res = x.unknownHistoryAnswer(res)
			}
			return next, res, why, nil
		}
		if next.retry == retryOriginal {
			ours := d
			invalid = &ours
		}
		res.Body.Close()
		d = next
	}
}

// learn keeps what an answer says of the model, and of the tries before it.
func (a *asker) learn(x *received, d decision, why refusal, accepted bool, invalid *decision) {
	switch {
	case why.kind == llm.ErrOverflow || why.kind == llm.ErrOutput:
		a.models.saveWindow(x, x.modelName(d.parsed), windowInRefusal(why.text))
	case !accepted:
	case d.retry == retryReasoning:
		a.models.saveReasoning(x, d.step.parsed.model.Name, true)
	case d.retry == retryOriginal: // ours was wrong, not the client's
		if invalid.retry == retryReasoning {
			a.models.saveReasoning(x, invalid.step.parsed.model.Name, false)
		}
		a.emitFault(x, "invalid", errors.New("the provider found the changed request invalid, and took the client's own"), invalid.step)
		a.undoUseless(x, invalid.step)
	case d.retry == retryPlanned || d.retry == retrySmaller:
		a.recovered.Add(1)
	}
}

// uncured are refusals after which a plan that was made for the request has not helped.
var uncured = []llm.Kind{llm.ErrOutput, llm.ErrPictures, llm.ErrBytes, llm.ErrInvalid}

// undoUseless puts the plan of before the request in force again, if one was made for it.
func (co *core) undoUseless(x *received, s *step) {
	if s == nil || s.prepared == nil || s.prepared.PlanVersion <= s.planBefore {
		return
	}
	co.bestEffort(x, "undo", s, func(ctx context.Context) error {
		return s.session.OnlyIf(palimpsest.Condition{Plans: &s.prepared.PlanVersion}).Undo(ctx, s.planBefore)
	})
}

// failureOf is the error of a request that the provider did not take, for the log of whoever runs the
// proxy: its kind and status, and nothing that was said.
func failureOf(res *http.Response, why refusal) error {
	byStatus := llm.Classify("", res.StatusCode, []byte("unread")) // a body without a word says that it is empty
	return &llm.APIError{Kind: cmp.Or(why.kind, byStatus, llm.ErrResponse), Status: res.StatusCode}
}

// unknownHistoryAnswer takes the place of an overflow of a history that is not known here: it
// has the client send the whole. If no answer does that, it is the provider's.
func (x *received) unknownHistoryAnswer(res *http.Response) *http.Response {
	h := x.held
	if h == nil || h.name == "" || h.known || h.kind == heldConversation {
		return res
	}
	res.Body.Close()
	why := native.ResponseNotFound(h.name)
	if h.kind == heldThread {
		why = native.ThreadNotFound()
	}
	return httpbody.NewAnswer(x.request, why.Status(), httpbody.JSON, why.Body())
}

// refusal is why a provider refused a request. The kind is empty if it did not, or if that cannot be
// read; text is what the provider wrote.
type refusal struct {
	kind llm.Kind
	text string
}

// maxRefusal bounds what is read of an error, in bytes.
const maxRefusal = 1 << 20

// readRefusal reads why a provider refused a request. The answer can still be read afterwards.
func (x *received) readRefusal(res *http.Response, d decision) refusal {
	if res.StatusCode < 400 {
		return x.earlyRefusal(res, d)
	}
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
	return classify(x.endpoint.dialect.API(), res, text)
}

func classify(api string, res *http.Response, text string) refusal {
	return refusal{llm.Classify(api, res.StatusCode, []byte(text)), text}
}

// earlyRefusal finds a refusal at the beginning of an answer with status 200. The answer can
// still be read from its beginning afterwards.
func (x *received) earlyRefusal(res *http.Response, d decision) refusal {
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
		seen, failed = append(seen, e.Raw...), err
		if err == nil && isPrelude(e) {
			continue
		}
		if err == nil && isError(e) {
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

// retryKind is how a refused request is sent again, each way once, in this order; with more reasoning it may be too long again.
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

// decideRetry decides what to send after a refusal. again is false if nothing helps; the
// decision is then the refused one.
func (st *stepper) decideRetry(ctx context.Context, x *received, d decision, res *http.Response, why refusal) (next decision, again bool) {
	invalid := why.kind == llm.ErrInvalid
	switch {
	case d.retry < retryWholeHistory && x.isHistoryRefused(res, d, why):
		next = st.withWholeHistory(ctx, x)
		next.retry = retryWholeHistory
	case (d.retry < retrySmaller || d.retry == retryReasoning) && (llm.IsOverflow(why.kind) || why.kind == llm.ErrPictures):
		next = st.decideOrForward(ctx, x, "overflow", func(ctx context.Context) (decision, error) { return st.compactAfterOverflow(ctx, x, d, why) })
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
			return st.decideRetry(ctx, x, d, res, why)
		}
		next.retry = retryReasoning
	case d.retry < retryOriginal && invalid && d.action != Passed:
		return decision{action: Passed, reason: reasonRefused, parsed: d.parsed, step: d.step, retry: retryOriginal}, true
	case d.retry < retryWithoutReasoning && invalid && (d.step != nil || d.reason == reasonFault || d.reason == reasonNative) && reasoningRefusal().MatchString(why.text):
		next = st.decideOrForward(ctx, x, "reasoning", func(ctx context.Context) (decision, error) { return st.withoutReasoning(ctx, x, d) })
		next.retry = retryWithoutReasoning
	default:
		return d, false
	}
	if next.action == Passed {
		return d, false // nothing better than what was refused could be made
	}
	return next, true
}

// isHistoryRefused reports whether the provider cannot continue a history that is known here:
// it has forgotten it, or holds none at all.
func (x *received) isHistoryRefused(res *http.Response, d decision, why refusal) bool {
	h := x.held
	return d.action == Passed && h != nil && h.known && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(strings.ToLower(why.text), string(h.kind))
}

// withWholeHistory decides again, with the whole history in place of its name.
func (st *stepper) withWholeHistory(ctx context.Context, x *received) decision {
	own, h, r := *x, *x.held, *x.held.rebuilt
	r.mustReplaceBody, h.rebuilt, h.incomplete = true, &r, true
	own.held = &h
	return st.decideOrForward(ctx, &own, "prepare", func(ctx context.Context) (decision, error) { return st.decide(ctx, &own) })
}

// compactAfterOverflow makes a smaller request of one that was refused for its size.
func (st *stepper) compactAfterOverflow(ctx context.Context, x *received, d decision, why refusal) (decision, error) {
	if d.step != nil {
		return st.compactMore(ctx, x, d.step, why)
	}
	r, reason, err := st.parsedOr(ctx, x, d.parsed)
	if r == nil {
		return forward(reason), err
	}
	r = st.withModelNow(ctx, x, r)
	switch r.kind {
	case identify.Step:
	case identify.OwnCompaction:
		r = r.asSummary()
	default:
		return decision{action: Passed, reason: string(r.kind), parsed: r}, nil
	}
	now, changed, err := st.beginStep(ctx, x, r)
	if err != nil {
		return decision{step: now}, err
	}
	if now.prepared.PlanVersion > 0 { // it may be all that it takes
		d, err := st.decideBody(ctx, x, now, now.prepared, changed)
		if err != nil || d.action != Passed {
			d.action = Recovered
			return d, err
		}
	}
	return st.compactMore(ctx, x, now, why)
}

// compactMore compacts further than the last rendering, which was refused, to what the model is now
// known to take.
func (st *stepper) compactMore(ctx context.Context, x *received, s *step, why refusal) (decision, error) {
	now, refused := *s, *s.prepared
	now.parsed = st.withModelNow(ctx, x, s.parsed)
	st.setLimits(x, &now.input, now.parsed)
	st.setLimits(x, &refused.Step, now.parsed)
	s = &now
	made, err := s.session.Overflowed(ctx, &refused, why.kind)
	if errors.Is(err, palimpsest.ErrNoRoom) {
		return decision{action: Passed, reason: reasonNoRoom, parsed: s.parsed, step: s}, nil
	}
	if err != nil {
		return decision{step: s}, err
	}
	d, err := st.decideBody(ctx, x, s, made, false)
	if d.action != Passed {
		d.action = Recovered
	}
	d.tokensBefore = max(d.tokensBefore, s.prepared.Before) // an earlier try may have compacted too
	return d, err
}

// withModelNow is the request with what is known of its model by now: a refusal may have named the
// window.
func (st *stepper) withModelNow(ctx context.Context, x *received, r *parsedRequest) *parsedRequest {
	out := *r
	out.model = st.models.modelNow(ctx, x, x.modelName(r))
	return &out
}

// Providers may demand the model's reasoning on every message in the assistant's role, also on those
// that are made here. Where the conversation does not show it (render.Profile.Suited), a refusal does:
// what was refused is sent once more without such messages, and if the provider takes that, later
// requests for the model are sent so at once.

// mayWantReasoning reports whether a refusal may be about reasoning that ours lacks. Servers of
// the Chat Completions API say it in any words; of other APIs only models come into question
// that are not known to bind their reasoning.
func (st *stepper) mayWantReasoning(ctx context.Context, x *received, d decision, why refusal) bool {
	if d.step == nil || d.step.prepared == nil || d.step.input.Profile.ReasoningEverywhere || !st.models.learnedOf(ctx, x, d.step.parsed.model.Name).ReasoningSeen.IsZero() {
		return false
	}
	return x.endpoint.dialect.API() == wire.Chat || !d.step.parsed.model.BindsThinking && reasoningRefusal().MatchString(why.text)
}

// withReasoningEverywhere renders the refused request for a provider that demands reasoning
// everywhere. It is the decision to pass if that changes nothing.
func (st *stepper) withReasoningEverywhere(ctx context.Context, x *received, refused decision) (decision, error) {
	s := *refused.step
	s.input.Messages = nil // they are in the log
	s.input.Profile.ReasoningEverywhere, s.input.Profile.BoundReasoning = true, false
	made, err := s.session.PrepareStep(ctx, s.input)
	if err != nil {
		return decision{step: refused.step}, err
	}
	d, err := st.decideBody(ctx, x, &s, made, refused.action != Passed)
	if err != nil || bytes.Equal(d.body, refused.body) {
		return forward(reasonRefused), err
	}
	if d.action == Planned {
		d.action = refused.action
	}
	d.tokensBefore = max(d.tokensBefore, refused.tokensBefore)
	return d, nil
}

// withoutReasoning is the client's request without any reasoning of the model. It is the decision to
// pass if there is none.
func (st *stepper) withoutReasoning(ctx context.Context, x *received, refused decision) (decision, error) {
	r, reason, err := st.parsedOr(ctx, x, refused.parsed)
	if r == nil || !slices.ContainsFunc(r.Prompt.Messages, hasReasoning) {
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
	d := decision{action: Planned, reason: reasonNoReasoning, parsed: r, step: refused.step, failedLog: refused.failedLog}
	d.body, err = x.endpoint.dialect.Encode(&p)
	d.tokensBefore, d.tokensSent = r.bytes/bytesPerToken, len(d.body)/bytesPerToken
	return d, err
}

func hasReasoning(m thread.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p thread.Part) bool { _, is := p.(thread.Reasoning); return is })
}

// parsedOr returns r, or parses the request if r is nil. The result is nil if that cannot be
// done, with the reason or an error.
func (st *stepper) parsedOr(ctx context.Context, x *received, r *parsedRequest) (*parsedRequest, string, error) {
	if r != nil {
		return r, "", nil
	}
	return st.conversations.parseRequest(ctx, x)
}
