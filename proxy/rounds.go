package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// rounds are the requests that one request of the client's became, because the
// model asked for what was removed.
type rounds struct {
	x      *exchange
	step   *step
	hidden []thread.Message // what the log gets, the client's own calls included
	logged int              // how many of them the log holds
	n      int
	// continues says that an answer which ended for length may be gone on with, next
	// is the request that does so.
	continues bool
	next      *decision
}

// roundEnd is what a round came to.
type roundEnd int

const (
	final    roundEnd = iota // nothing for us
	lookedUp                 // only our tools were called: another round
	cutShort                 // it ended for length: another round, and nothing of its calls
	mixed                    // the client's tools were called as well
	tooOften                 // only our tools were called, though the model was told to stop
)

// answer reads an answer for calls of our tools, whole or as it streams.
func (x *exchange) answer(res *http.Response, d decision) (*http.Response, error) {
	if d.step == nil {
		return res, nil
	}
	r := &rounds{x: x, step: d.step, continues: x.continues(d)}
	if !d.step.offered && !r.continues {
		return res, nil
	}
	r.resume()
	if !streams(res) {
		return r.whole(res)
	}
	if !unpacked(res) {
		return res, nil // nobody here can read it: the client may
	}
	uncompressed(res, -1)
	ctx, cancel := context.WithCancel(x.request.Context())
	own, api := *x, x.endpoint.dialect
	own.request = x.request.WithContext(ctx)
	r.x = &own
	res.Body = &stream{rounds: r, body: res.Body, cancel: cancel, events: sse.NewReader(res.Body, 0), answer: api.NewStream(), translator: api.translator()}
	return res, nil
}

// resume takes up the rounds of an earlier try.
func (r *rounds) resume() {
	for _, m := range r.step.open {
		r.hidden = append(r.hidden, *m)
		if m.Role == thread.Assistant {
			r.n++
		}
	}
	r.logged = len(r.hidden)
}

// uncompressed corrects what an answer says of its body.
func uncompressed(res *http.Response, length int64) {
	res.Header.Del("Content-Encoding")
	res.Header.Del("Content-Length")
	res.ContentLength = length
	res.Uncompressed = true
	if length >= 0 {
		res.Header.Set("Content-Length", strconv.FormatInt(length, 10))
	}
}

// maxAnswer bounds an answer that is read as a whole, in bytes. A larger one
// passes as it is.
const maxAnswer = 64 << 20

// readAnswer reads the body of an answer, which can be read again afterwards. It
// is false where that is too long or broke off.
func readAnswer(res *http.Response) ([]byte, bool) {
	read, all, err := readBody[[]byte](res.Body, maxAnswer, nil)
	if err != nil || !all {
		res.Body = again(read, err, res.Body, res.Body)
		return nil, false
	}
	res.Body.Close()
	given(res, read)
	return read, true
}

// whole answers with one body for all rounds.
func (r *rounds) whole(res *http.Response) (*http.Response, error) {
	d := r.x.endpoint.dialect
	raw, all := readAnswer(res)
	if !all {
		r.leave()
		return res, nil
	}
	body, err := decoded(res.Header, raw, maxAnswer, nil)
	if err != nil {
		return res, nil // nobody here can read it: the client may
	}
	bodies := [][]byte{body}
	for {
		said, err := d.DecodeAnswer(body)
		if err != nil {
			r.x.fault("answer", err, r.step)
			r.leave()
			return given(res, raw), nil
		}
		what := r.take(said)
		if what == cutShort {
			bodies[len(bodies)-1] = withoutCalls(d.API(), body)
		} else if what != lookedUp {
			if what == final && len(bodies) == 1 && !bytes.Contains(body, []byte(ourMark)) {
				r.keep()
				return given(res, raw), nil
			}
			break
		}
		err = r.ask(func(further *http.Response) (err error) {
			res = further
			read, all, err := readBody[[]byte](res.Body, maxAnswer, nil)
			if err != nil {
				return err
			}
			res.Body.Close()
			if !all {
				return errLong
			}
			raw = read
			body, err = decoded(res.Header, raw, maxAnswer, nil)
			return err
		})
		var f *failure
		switch {
		case errors.As(err, &f) && f.res != nil:
			return f.res, nil // as the provider wrote it
		case err != nil:
			return nil, err
		}
		bodies = append(bodies, body)
	}
	r.keep()
	body = d.joined(bodies)
	uncompressed(res, int64(len(body)))
	return given(res, body), nil
}

// ourMark stands in every answer that may show our tools to the client.
const ourMark = `"` + rehydrate.ReadArtifact + `"`

// given is an answer with another body.
func given(res *http.Response, b []byte) *http.Response {
	res.Body = io.NopCloser(bytes.NewReader(b))
	return res
}

// errLong says that the answer of a round is longer than what is read.
var errLong = fmt.Errorf("the answer has more than %d bytes", maxAnswer)

// take looks at what the model said in a round, and answers the calls that are
// ours.
func (r *rounds) take(a wire.Answer) roundEnd {
	if r.cutOff(a) {
		return cutShort
	}
	m := a.Message
	var own, theirs int
	for _, c := range m.Calls() {
		if isOurTool(c.Name) {
			own++
		} else {
			theirs++
		}
	}
	if own == 0 && len(r.hidden) == 0 {
		return final
	}
	m = r.named(m, theirs > 0 || own == 0)
	r.hidden = append(r.hidden, m)
	if own == 0 {
		return final
	}
	ctx := r.x.request.Context()
	left := r.x.t.options.Rounds - 1 - r.n // requests that may follow; then comes one in which the model is told so
	for _, c := range m.Calls() {
		if !isOurTool(c.Name) {
			continue
		}
		answer, ok := failed(c, usedUp), true
		if left > 0 || theirs > 0 {
			var err error
			if answer, ok, err = r.step.session.Answer(ctx, r.step.prepared, c); err != nil || !ok {
				answer = failed(c, "The text cannot be read now.")
			}
		}
		r.hidden = append(r.hidden, answer)
	}
	switch {
	case theirs > 0:
		return mixed
	case left < 0:
		return tooOften
	}
	return lookedUp
}

// usedUp is told to a model that looks things up without end. It is the result of
// its calls, not a tool choice: to forbid calls would forbid the client's tools as
// well, is refused beside thinking by some, and changes what a prompt cache
// goes by.
const usedUp = "Nothing more can be looked up in this turn. Go on with what you have: answer, or use another tool."

// failed is the result of a call that is not answered.
func failed(c thread.ToolCall, why string) thread.Message {
	return thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
		CallID: c.ID, Tool: c.Name, Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: why}},
	}}}
}

// named gives the calls of an API without ids such ids as no other call of the
// conversation has; the client's own calls get those that they will have when the
// client sends them back.
func (r *rounds) named(m thread.Message, last bool) thread.Message {
	m.Parts = append([]thread.Part(nil), m.Parts...)
	m.Frame = nil
	next := 0
	for i := range r.step.read.Prompt.Messages {
		for _, c := range r.step.read.Prompt.Messages[i].Calls() {
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
		if last && !isOurTool(c.Name) {
			c.ID = thread.LocalID(next)
			next++
		} else {
			c.ID = thread.LocalID(beyond + 100*r.n + i)
		}
		m.Parts[i] = c
	}
	return m
}

// hiddenCalls is where the numbers of calls begin that no client has seen.
const hiddenCalls = 1_000_000

// prepare writes the rounds so far to the log, and renders the request of the
// next from it.
func (r *rounds) prepare(ctx context.Context) (decision, error) {
	ask := r.step.ask
	ask.Messages = r.news()
	made, err := r.step.session.PrepareStep(ctx, ask)
	if err != nil {
		return decision{step: r.step}, err
	}
	return r.x.finish(ctx, r.step, made, true)
}

// news are the messages of the rounds that the log does not hold yet.
func (r *rounds) news() []thread.Message {
	last := r.step.read.IDs[len(r.step.read.IDs)-1]
	var ids []thread.ID
	for n := r.logged; n < len(r.hidden); n++ {
		ids = append(ids, identify.HiddenID(last, n))
	}
	return identify.Detached(r.hidden[r.logged:], ids)
}

// keep writes the rounds to the log before the client hears of their end. A store
// that fails costs no more than the knowledge of them.
func (r *rounds) keep() {
	if len(r.hidden) == 0 {
		return
	}
	s, news := r.step, r.news()
	r.x.attempt(context.WithoutCancel(r.x.request.Context()), "rounds", s, func(ctx context.Context) error {
		return s.session.FinishStep(ctx, s.prepared, llm.Usage{}, news...)
	})
}
