package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// longestPatience is how long a round is asked for again, in all: less than the
// clients wait for the next byte of a stream (Codex 300 s, the SDKs 600 s).
const longestPatience = time.Minute

// failure is a round that was not answered.
type failure struct {
	llm.APIError
	res   *http.Response // the refusal, to be read; nil where there is none
	wrote []byte         // what the provider wrote in a stream that began well
}

// Unwrap gives errors.As and errors.Is the error of the API.
func (f *failure) Unwrap() error { return &f.APIError }

func (f *failure) close() {
	if f != nil && f.res != nil {
		f.res.Body.Close()
	}
}

// ask sends a further request and has its answer read. What may pass is tried
// again, as a good client would, so that a moment's trouble does not cost the
// rounds before it; read fails only while nothing of the answer has reached the
// client. When ask fails the rounds so far are left for the client's next try.
// Where something of ours fails the client's own request takes the round's place.
func (r *rounds) ask(read func(*http.Response) error) error {
	r.n++
	ctx := r.x.request.Context()
	v := r.x.guarded(ctx, "round", r.prepare)
	if v.action == Passed {
		v.step = r.step
	}
	var last *failure
	err := r.x.t.retry.Do(ctx, func(ctx context.Context) error {
		last.close()
		last = nil
		err := r.try(ctx, &v, read)
		errors.As(err, &last)
		return err
	}, decide)
	if err != nil {
		r.leave()
		return err
	}
	r.x.t.sent.Add(int64(v.sent))
	return nil
}

// try sends the request once; where it is too long or not valid, what becomes of
// it is what is sent from then on.
func (r *rounds) try(ctx context.Context, v *verdict, read func(*http.Response) error) error {
	res, err := r.x.send(*v)
	if err != nil {
		return &failure{APIError: llm.APIError{Kind: llm.ErrConnection, Err: err}}
	}
	kind := r.x.refusal(res, *v)
	switch kind {
	case llm.ErrOverflow:
		*v, res, err = r.x.harder(ctx, *v, res)
	case llm.ErrInvalid:
		*v, res, err = r.x.backOff(*v, res)
	}
	if kind == llm.ErrOverflow || kind == llm.ErrInvalid {
		if err != nil {
			return &failure{APIError: llm.APIError{Kind: llm.ErrConnection, Err: err}}
		}
		kind = r.x.refusal(res, *v)
	}
	if kind != "" || res.StatusCode != http.StatusOK {
		f := r.refused(res, kind)
		if res.StatusCode == http.StatusOK {
			f.wrote = []byte(r.x.said)
		}
		return f
	}
	return r.broken(res, read(res))
}

// refused is the failure of an answer that says so.
func (r *rounds) refused(res *http.Response, kind llm.Kind) *failure {
	api := r.x.endpoint.dialect.API()
	f := &failure{res: res}
	if e := llm.Failure(api, res.StatusCode, []byte(r.x.said)); e != nil {
		f.APIError = *e
	}
	f.Kind = or(kind, or(f.Kind, llm.ErrResponse))
	f.RetryAfter = retry.After(res.Header, time.Now())
	// What the official SDKs go by.
	f.Once = res.Header.Get("X-Should-Retry") == "false"
	return f
}

// broken is the failure of an answer that began and did not come to its end.
func (r *rounds) broken(res *http.Response, err error) error {
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

// decide says which failures of a round may pass.
func decide(err error) retry.Decision {
	var f *failure
	if !errors.As(err, &f) {
		return retry.Decision{}
	}
	return retry.Decision{Again: f.Temporary(), After: f.RetryAfter}
}

// leave has the client's next try go on from the rounds that are in the log.
func (r *rounds) leave() {
	if r.logged > 0 {
		r.x.t.left.add(r.step.id)
	}
}

// left are the logs that end with rounds whose answer did not reach the client,
// and that nobody works on. It is known in this process alone: elsewhere the same
// request begins anew, in a fork.
type left struct {
	mu   sync.Mutex
	logs map[string]bool
}

// maxLeft bounds what is remembered.
const maxLeft = 1000

func (l *left) add(log string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.logs == nil || len(l.logs) >= maxLeft {
		l.logs = map[string]bool{}
	}
	l.logs[log] = true
}

// claim takes a log, for one request alone.
func (l *left) claim(log string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	there := l.logs[log]
	delete(l.logs, log)
	return there
}

// unanswered reports whether rounds wait for the model: the last of them holds
// nothing but answers to calls that are ours.
func unanswered(rounds []*thread.Message) bool {
	answered := false
	for i := len(rounds) - 1; i >= 0; i-- {
		m := rounds[i]
		if m.Role == thread.Tool {
			answered = true
			continue
		}
		for _, c := range m.Calls() {
			if !ours(c.Name) {
				return false
			}
		}
		return answered
	}
	return false
}

// said tells of a failure in one sentence, without what could be a secret.
func (f *failure) said() string {
	if f.Message != "" {
		return f.Message
	}
	return fmt.Sprintf("the provider gave no further answer (%s)", f.Kind)
}
