package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// maxRetryTime bounds the tries of a round: less than clients wait for the next byte of a stream
// (Codex 300 s, the SDKs 600 s).
const maxRetryTime = time.Minute

// failure is the error of a round without an answer.
type failure struct {
	llm.APIError
	res          *http.Response // the refusal, still readable; nil for none
	providerText []byte         // what the provider wrote
}

// Unwrap gives errors.As and errors.Is the error of the API.
func (f *failure) Unwrap() error { return &f.APIError }

// Timeout is that of the connection, as of connectionError.
func (f *failure) Timeout() bool { return isTimeout(f.Err) }

func (f *failure) closeBody() {
	if f != nil && f.res != nil {
		f.res.Body.Close()
	}
}

// sendRound sends a further request and has read read its answer. read may only fail before any of
// it has reached the client. Failures that may pass are retried, as a good client would, so that
// they do not cost the rounds before. In the end those are left for the client's next try. If
// our own part fails, the client's own request takes the place of the round.
func (r *rounds) sendRound(read func(*http.Response) error) error {
	r.number++
	ctx := r.x.request.Context()
	var d decision
	if r.continuation != nil {
		d, r.continuation = *r.continuation, nil
	} else {
		d = r.decideOrForward(ctx, r.x, "round", r.decide)
	}
	if d.action == Passed {
		d.step = r.step
	} else {
		r.step, r.loggedCount = d.step, len(r.hidden)
	}
	var last *failure
	err := r.retry.Do(ctx, func(ctx context.Context) error {
		last.closeBody()
		last = nil
		err := r.sendOnce(ctx, &d, read)
		errors.As(err, &last)
		return err
	}, retryableFailure)
	if err != nil {
		r.keepForRetry()
		return err
	}
	r.tokensSent.Add(int64(d.tokensSent))
	return nil
}

// sendOnce sends the request once. If it had to be changed (too long, or invalid), the changed one
// is sent from then on.
func (r *rounds) sendOnce(ctx context.Context, d *decision, read func(*http.Response) error) error {
	d.retry, d.failed = noRetry, nil
	now, res, why, err := r.asker.ask(ctx, r.x, *d)
	*d = now
	if err != nil {
		return &failure{APIError: llm.APIError{Kind: llm.ErrConnection, Err: err}}
	}
	if why.kind != "" || res.StatusCode != http.StatusOK {
		return r.refusedRound(res, why)
	}
	return r.brokenRound(res, read(res))
}

// refusedRound is the failure of a round that the provider refused.
func (r *rounds) refusedRound(res *http.Response, why refusal) *failure {
	f := r.failureSaid(res.StatusCode, why.text)
	f.res = res
	f.Kind = cmp.Or(why.kind, f.Kind, llm.ErrResponse)
	f.RetryAfter = retry.RetryAfter(res.Header, time.Now())
	f.NoRetry = res.Header.Get("X-Should-Retry") == "false" // as the official SDKs read it
	return f
}

// failureSaid is the failure that a provider tells of.
func (r *rounds) failureSaid(status int, text string) *failure {
	f := &failure{providerText: []byte(text)}
	if e := llm.Failure(r.x.endpoint.dialect.API(), status, f.providerText); e != nil {
		f.APIError = *e
	}
	return f
}

// brokenRound is the failure of an answer that broke off.
func (r *rounds) brokenRound(res *http.Response, err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	res.Body.Close()
	kind := llm.ErrConnection
	if errors.Is(err, httpbody.ErrEncoding) || errors.Is(err, httpbody.ErrTooLong) {
		kind = llm.ErrResponse
	}
	return &failure{APIError: llm.APIError{Kind: kind, Err: err}}
}

// retryableFailure says which failures of a round may pass.
func retryableFailure(err error) retry.Decision {
	var f *failure
	if !errors.As(err, &f) {
		return retry.Decision{}
	}
	return retry.Decision{Retry: f.Temporary(), After: f.RetryAfter}
}

// sentence is the failure in one sentence, without anything secret.
func (f *failure) sentence() string {
	if f.Message != "" {
		return f.Message
	}
	return fmt.Sprintf("the provider gave no further answer (%s)", f.Kind)
}
