package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
)

// maxRetryTime is how long a round is asked for again, in all: less than the
// clients wait for the next byte of a stream (Codex 300 s, the SDKs 600 s).
const maxRetryTime = time.Minute

// failure is a round that was not answered.
type failure struct {
	llm.APIError
	res          *http.Response // the refusal, to be read; nil where there is none
	providerText []byte         // what the provider wrote of it
}

// Unwrap gives errors.As and errors.Is the error of the API.
func (f *failure) Unwrap() error { return &f.APIError }

func (f *failure) closeBody() {
	if f != nil && f.res != nil {
		f.res.Body.Close()
	}
}

// sendRound sends a further request and has its answer read. What may pass is tried
// again, as a good client would, so that a moment's trouble does not cost the
// rounds before it; read fails only while nothing of the answer has reached the
// client. When ask fails the rounds so far are left for the client's next try.
// Where something of ours fails the client's own request takes the round's place.
func (r *rounds) sendRound(read func(*http.Response) error) error {
	r.number++
	ctx := r.x.request.Context()
	var d decision
	if r.continuation != nil {
		d, r.continuation = *r.continuation, nil
	} else {
		d = r.x.decideOrForward(ctx, "round", r.prepareRound)
	}
	if d.action == Passed {
		d.step = r.step
	} else {
		r.step, r.loggedCount = d.step, len(r.hidden)
	}
	var last *failure
	err := r.x.t.retry.Do(ctx, func(ctx context.Context) error {
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
	r.x.t.tokensSent.Add(int64(d.tokensSent))
	return nil
}

// sendOnce sends the request once; where it is too long or not valid, what becomes of
// it is what is sent from then on.
func (r *rounds) sendOnce(ctx context.Context, d *decision, read func(*http.Response) error) error {
	d.retry = noRetry
	now, res, why, err := r.x.sendWithRetry(ctx, *d)
	*d = now
	if err != nil {
		return &failure{APIError: llm.APIError{Kind: llm.ErrConnection, Err: err}}
	}
	if why.kind != "" || res.StatusCode != http.StatusOK {
		return r.refusedRound(res, why)
	}
	return r.brokenRound(res, read(res))
}

// refusedRound is the failure of an answer that says so.
func (r *rounds) refusedRound(res *http.Response, why refusal) *failure {
	api := r.x.endpoint.dialect.API()
	f := &failure{res: res, providerText: []byte(why.text)}
	if e := llm.Failure(api, res.StatusCode, f.providerText); e != nil {
		f.APIError = *e
	}
	f.Kind = cmp.Or(why.kind, f.Kind, llm.ErrResponse)
	f.RetryAfter = retry.RetryAfter(res.Header, time.Now())
	// What the official SDKs go by.
	f.NoRetry = res.Header.Get("X-Should-Retry") == "false"
	return f
}

// brokenRound is the failure of an answer that began and did not come to its end.
func (r *rounds) brokenRound(res *http.Response, err error) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	res.Body.Close()
	kind := llm.ErrConnection
	if errors.Is(err, errEncoding) || errors.Is(err, errLong) {
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

// keepForRetry has the client's next try go on from the rounds that are in the log.
func (r *rounds) keepForRetry() {
	if r.loggedCount > 0 {
		r.x.t.openLookups.add(r.step.logID)
	}
}

// sentence tells of a failure in one sentence, without what could be a secret.
func (f *failure) sentence() string {
	if f.Message != "" {
		return f.Message
	}
	return fmt.Sprintf("the provider gave no further answer (%s)", f.Kind)
}
