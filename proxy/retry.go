package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/lazyregexp"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/wire"
)

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
		d, err := st.encodePrepared(ctx, x, now, now.prepared, changed)
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
	d, err := st.encodePrepared(ctx, x, s, made, false)
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
	d, err := st.encodePrepared(ctx, x, &s, made, refused.action != Passed)
	if err != nil || bytes.Equal(d.body, refused.body) {
		return forward(reasonRefused), err
	}
	if d.action == Planned {
		d.action = refused.action
	}
	d.tokensBefore = max(d.tokensBefore, refused.tokensBefore)
	return d, nil
}

// withoutReasoning is the request without any reasoning of the model.
func (st *stepper) withoutReasoning(ctx context.Context, x *received, r *parsedRequest) (decision, error) {
	r, reason, err := st.parsedOr(ctx, x, r)
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

// parsedOr returns r, or parses the request if r is nil. The result is nil if that cannot be
// done, with the reason or an error.
func (st *stepper) parsedOr(ctx context.Context, x *received, r *parsedRequest) (*parsedRequest, string, error) {
	if r != nil {
		return r, "", nil
	}
	return st.parser.parseRequest(ctx, x)
}
