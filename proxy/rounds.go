package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/retry"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// lookups answers the calls of our tools, and goes on with answers that were cut off.
type lookups struct {
	*core
	stepper     *stepper
	asker       *asker
	providerIDs *lru.Cache[string, string]
	retry       retry.Policy // of further requests
}

// answerCalls finds calls of our tools in an answer, and answers them in further requests. It returns the
// answer for the client, whole or as a stream. If that is the refusal of a further request, failed says
// why; err is that of the connection.
func (l *lookups) answerCalls(x *received, res *http.Response, d decision) (out *http.Response, failed, err error) {
	if d.step == nil {
		return res, nil, nil
	}
	r := &rounds{lookups: l, x: x, step: d.step}
	// An answer that is cut off for length may be continued if the policy is that of an agent loop which does so.
	// Where the client has tools by the names of ours, their calls are the client's.
	_, loop := policy.As[policy.Loop](l.options.Config.Policy)
	r.canContinue = loop && d.step.prepared != nil && !x.endpoint.declaresOurs(d.step.parsed.Prompt.Tools) && x.endpoint.dialect.CanReadAnswer(x.request, d.step.parsed.Members)
	if !d.step.toolsOffered && !r.canContinue {
		return res, nil, nil
	}
	r.resumeLookups()
	if !httpbody.IsStream(res) {
		return r.answerWhole(res)
	}
	if !httpbody.DecompressStream(res) {
		r.emitUnread(httpbody.ErrEncoding)
		return res, nil, nil // perhaps the client can read it
	}
	httpbody.SetPlainLength(res, -1)
	ctx, cancel := context.WithCancel(x.request.Context())
	own, api := *x, x.endpoint.dialect
	own.request = x.request.WithContext(ctx)
	r.x = &own
	s := &lookupStream{rounds: r, logID: d.step.logID, body: res.Body, cancel: cancel, events: sse.NewReader(res.Body, 0), answer: api.NewStream()}
	s.translator, s.rewinder = api.Translator()
	res.Body = s
	return res, nil, nil
}

// resumeLookups takes up the rounds of an interrupted try.
func (r *rounds) resumeLookups() {
	for _, m := range r.step.openLookups {
		r.hidden = append(r.hidden, *m)
		if m.Role == thread.Assistant {
			r.number++
		}
	}
	r.loggedCount = len(r.hidden)
}

// keepForRetry lets the client's next try continue from the rounds in the log.
func (r *rounds) keepForRetry() {
	if r.loggedCount > 0 {
		r.stepper.conversations.keepLookups(r.step.logID)
	}
}

// answerWhole joins the answers of all rounds into one body. If that fails here, the client gets the
// provider's last answer.
func (r *rounds) answerWhole(res *http.Response) (out *http.Response, failed, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.emitFault(r.x, "answer", failsafe.Recovered(p), r.step)
			r.keepForRetry()
			out, failed, err = res, nil, nil
		}
	}()
	d := r.x.endpoint.dialect
	body, err := httpbody.ReadAnswer(res)
	if err != nil {
		r.emitUnread(err)
		r.keepForRetry()
		return res, nil, nil // perhaps the client can read it
	}
	bodies := [][]byte{body}
	for {
		said, err := d.DecodeAnswer(body)
		if err != nil {
			r.emitUnread(err)
			r.keepForRetry()
			return res, nil, nil
		}
		end := r.takeAnswer(said)
		if end == roundFinal && len(bodies) == 1 && !bytes.Contains(body, []byte(ourToolMark)) {
			r.logRounds()
			return res, nil, nil
		}
		if end != roundCutOff && end != roundLookups {
			break
		}
		err = r.sendRound(func(further *http.Response) (err error) {
			res = further
			body, err = httpbody.ReadAnswer(res)
			return err
		})
		var f *failure
		switch {
		case errors.As(err, &f) && f.res != nil:
			return f.res, failureOf(f.res, refusal{kind: f.Kind}), nil // as the provider wrote it
		case err != nil:
			return nil, nil, err
		}
		if end == roundCutOff {
			bodies[len(bodies)-1] = d.WithoutCalls(bodies[len(bodies)-1])
		}
		bodies = append(bodies, body)
	}
	r.logRounds()
	body = d.JoinAnswers(bodies)
	httpbody.SetPlainLength(res, int64(len(body)))
	return httpbody.Set(res, body), nil, nil
}

// ourToolMark is in every answer that repeats our tools.
const ourToolMark = `"` + recall.ReadArtifactTool + `"`

// takeAnswer takes the model's answer in a round, and answers the calls of our tools.
func (r *rounds) takeAnswer(a wire.Answer) roundEnd {
	if r.continueCutOff(a) {
		return roundCutOff
	}
	m := a.Message
	var own, theirs int
	for _, c := range m.Calls() {
		if r.x.endpoint.dialect.IsOurTool(c.Name) {
			own++
		} else {
			theirs++
		}
	}
	if own == 0 && len(r.hidden) == 0 {
		return roundFinal
	}
	m = r.withCallIDs(m, theirs > 0 || own == 0)
	r.hidden = append(r.hidden, m)
	if own == 0 {
		return roundFinal
	}
	ctx := r.x.request.Context()
	left := r.options.Rounds - 1 - r.number // rounds that may follow; then comes a last one in which the model is told so
	for _, c := range m.Calls() {
		if !r.x.endpoint.dialect.IsOurTool(c.Name) {
			continue
		}
		answer := thread.NewResult(c, thread.Failure, noMoreLookups)
		if left > 0 || theirs > 0 {
			answer = r.lookUp(ctx, c)
		}
		r.hidden = append(r.hidden, answer)
	}
	switch {
	case theirs > 0:
		return roundMixed
	case left < 0:
		return roundLookupsExceeded
	}
	return roundLookups
}

// continueCutOff reports whether another round follows an answer that was cut off for length: if a
// compaction is due with it, and makes the request smaller. Else the client gets the answer as it
// came.
func (r *rounds) continueCutOff(a wire.Answer) bool {
	if !r.canContinue || a.Stop != wire.StopLength && a.Stop != wire.StopContext || r.number >= r.options.Rounds-1 {
		return false
	}
	further := *r
	next, err := failsafe.Within(r.x.request.Context(), r.options.Deadline, func(ctx context.Context) (decision, error) {
		after, err := r.step.session.CutOffMessages(ctx, r.step.prepared, r.withCallIDs(a.Message, false))
		if err != nil {
			return decision{}, err
		}
		further.hidden = append(slices.Clip(r.hidden), after...)
		return further.decide(ctx)
	})
	switch {
	case err != nil && !errors.Is(err, policy.ErrMaxTokens):
		r.emitFault(r.x, "cut_off", err, r.step)
		return false
	case err != nil || next.action != Compacted || next.tokensSent >= next.tokensBefore:
		return false
	}
	r.hidden, r.continuation = further.hidden, &next
	return true
}

// withCallIDs gives calls without ids (Gemini's) ids that no other call of the conversation has. In
// the last round the client's calls get those that they will have when the client sends them
// back.
func (r *rounds) withCallIDs(m thread.Message, last bool) thread.Message {
	m.Parts = append([]thread.Part(nil), m.Parts...)
	m.Frame = nil
	next := 0
	for i := range r.step.parsed.Prompt.Messages {
		for _, c := range r.step.parsed.Prompt.Messages[i].Calls() {
			if thread.IsLocalID(c.ID) {
				next++
			}
		}
	}
	beyond := hiddenCalls * (next + 1)
	for i, part := range m.Parts {
		c, ok := part.(thread.ToolCall)
		if !ok || !thread.IsLocalID(c.ID) {
			continue
		}
		if last && !r.x.endpoint.dialect.IsOurTool(c.Name) {
			c.ID = thread.LocalID(next)
			next++
		} else {
			c.ID = thread.LocalID(beyond + 100*r.number + i)
		}
		m.Parts[i] = c
	}
	return m
}

// rounds are the requests that one request of the client's became, because the model called our
// tools.
type rounds struct {
	*lookups
	x           *received
	step        *step
	hidden      []thread.Message // for the log: all messages of the rounds, the client's calls included
	loggedCount int              // how many of them the log holds
	number      int              // of the current round, from 0
	// canContinue says that an answer which is cut off may be continued. continuation is the
	// request that does so.
	canContinue  bool
	continuation *decision
}

// emitUnread tells of an answer that cannot be read. It passes as it came, and is the provider's fault.
func (r *rounds) emitUnread(err error) {
	r.emitFault(r.x, "answer", &connectionError{error: err, side: providerSide}, r.step)
}

// roundEnd is how a round ended.
type roundEnd int

const (
	roundFinal           roundEnd = iota // without calls of our tools
	roundLookups                         // with calls of our tools alone: another round follows
	roundCutOff                          // cut off for length: another round follows, without its calls
	roundMixed                           // with calls of the client's tools as well
	roundLookupsExceeded                 // with calls of our tools alone, though the model was told to stop
)

// lookUp answers a call of our tools, within the deadline of our own part.
func (r *rounds) lookUp(ctx context.Context, c thread.ToolCall) thread.Message {
	s := r.step
	answer, err := failsafe.Within(ctx, r.options.Deadline, func(ctx context.Context) (thread.Message, error) {
		answer, ok, err := s.session.Answer(ctx, s.prepared, c)
		if err == nil && !ok {
			err = errors.New("the session has no such tool")
		}
		return answer, err
	})
	if err == nil {
		return answer
	}
	if ctx.Err() == nil { // else the client left
		r.emitFault(r.x, "lookup", err, s)
	}
	return thread.NewResult(c, thread.Failure, "The text cannot be read now.")
}

// noMoreLookups is the result of calls of a model that looks things up without end. A tool choice
// that forbids calls would forbid the client's tools as well, is refused beside thinking by some
// providers, and changes the key of the prompt cache.
const noMoreLookups = "Nothing more can be looked up in this turn. Go on with what you have: answer, or use another tool."

// hiddenCalls is the number from which calls are numbered that the client does not see.
const hiddenCalls = 1_000_000

// decide is what is sent in the next round.
func (r *rounds) decide(ctx context.Context) (decision, error) {
	return r.stepper.continueStep(ctx, r.x, r.step, r.unloggedMessages())
}

// unloggedMessages are the messages of the rounds that are not in the log yet.
func (r *rounds) unloggedMessages() []thread.Message {
	last := r.step.parsed.IDs[len(r.step.parsed.IDs)-1]
	var ids []thread.ID
	for n := r.loggedCount; n < len(r.hidden); n++ {
		ids = append(ids, identify.HiddenID(last, n))
	}
	return identify.Detach(r.hidden[r.loggedCount:], ids)
}

// logRounds writes the rounds to the log before the client gets the end of the answer. If the store
// fails the conversation goes on without them.
func (r *rounds) logRounds() {
	if len(r.hidden) == 0 {
		return
	}
	s, news := r.step, r.unloggedMessages()
	r.bestEffort(r.x, "rounds", s, func(ctx context.Context) error {
		return s.session.FinishStep(ctx, s.prepared, wire.Usage{}, news...)
	})
}

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
	})
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

func (r *rounds) refusedRound(res *http.Response, why refusal) *failure {
	f := r.failureSaid(res.StatusCode, why.text)
	f.res = res
	f.Kind = cmp.Or(why.kind, f.Kind, llm.ErrResponse)
	f.RetryAfter = retry.RetryAfter(res.Header, time.Now())
	f.NoRetry = res.Header.Get("X-Should-Retry") == "false" // as the official SDKs read it
	return f
}

func (r *rounds) failureSaid(status int, text string) *failure {
	f := &failure{providerText: []byte(text)}
	if e := llm.Failure(r.x.endpoint.dialect.API(), status, f.providerText); e != nil {
		f.APIError = *e
	}
	return f
}

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

// sentence is the failure in one sentence, without anything secret.
func (f *failure) sentence() string {
	if f.Message != "" {
		return f.Message
	}
	return fmt.Sprintf("the provider gave no further answer (%s)", f.Kind)
}
