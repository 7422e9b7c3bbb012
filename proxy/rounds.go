package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// rounds are the requests that one request of the client's became, because the
// model asked for what was removed.
type rounds struct {
	x      *exchange
	step   *step
	hidden []thread.Message // what the log gets, the client's own calls included
	logged int              // how many of them the log holds
	n      int
}

// turn is what a round came to.
type turn int

const (
	final    turn = iota // nothing for us
	goesOn               // only our tools were called: another round
	mixed                // the client's tools were called as well
	tooOften             // only our tools were called, once too often
)

// answer reads an answer for calls of our tools, whole or as it streams.
func (x *exchange) answer(res *http.Response, v verdict) (*http.Response, error) {
	r := &rounds{x: x, step: v.step}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return r.whole(res)
	}
	var plain io.Reader = res.Body
	switch strings.ToLower(res.Header.Get("Content-Encoding")) {
	case "", "identity":
	case "gzip":
		plain = &lazyGzip{from: res.Body}
	default:
		return res, nil // nobody here can read it: the client may
	}
	uncompressed(res, -1)
	res.Body = &stream{rounds: r, body: res.Body, events: newEvents(plain), translator: x.endpoint.dialect.translator()}
	return res, nil
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

// whole answers with one body for all rounds.
func (r *rounds) whole(res *http.Response) (*http.Response, error) {
	d := r.x.endpoint.dialect
	var bodies [][]byte
	for {
		raw, all, err := readBody(res.Body, -1, maxAnswer)
		if err != nil || !all {
			res.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(raw.bytes), failing{err}, res.Body), res.Body}
			return res, nil
		}
		res.Body.Close()
		again := func(b []byte) (*http.Response, error) {
			res.Body = io.NopCloser(bytes.NewReader(b))
			return res, nil
		}
		body, err := decoded(res.Header, raw.bytes, maxAnswer)
		if err != nil || res.StatusCode != http.StatusOK {
			return again(raw.bytes) // a refused round is the answer
		}
		bodies = append(bodies, body)
		m, err := d.said(body)
		if err != nil {
			r.x.fault("answer", err, verdict{step: r.step})
			return again(raw.bytes)
		}
		what := r.take(m)
		if what == goesOn {
			if res, err = r.send(); err != nil {
				return nil, err
			}
			continue
		}
		if r.n == 0 && what == final {
			return again(raw.bytes)
		}
		r.keep()
		body = d.joined(bodies)
		uncompressed(res, int64(len(body)))
		return again(body)
	}
}

// take looks at what the model said in a round, and answers the calls that are
// ours.
func (r *rounds) take(m thread.Message) turn {
	var own, theirs int
	for _, c := range m.Calls() {
		if ours(c.Name) {
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
	for _, c := range m.Calls() {
		if !ours(c.Name) {
			continue
		}
		answer, ok, err := r.step.thread.Answer(ctx, c)
		if err != nil || !ok {
			answer = thread.Message{Role: thread.Tool, Parts: []thread.Part{thread.ToolResult{
				CallID: c.ID, Tool: c.Name, Outcome: thread.Failure, Content: []thread.Part{thread.Text{Text: "The text cannot be read now."}},
			}}}
		}
		r.hidden = append(r.hidden, answer)
	}
	switch {
	case theirs > 0:
		return mixed
	case r.n+1 >= r.x.t.options.Rounds:
		return tooOften
	}
	return goesOn
}

// named gives the calls of an API without ids such ids as no other call of the
// conversation has; the client's own calls get those that they will have when the
// client sends them back.
func (r *rounds) named(m thread.Message, last bool) thread.Message {
	m.Parts = append([]thread.Part(nil), m.Parts...)
	m.Frame = nil
	next := 0
	for i := range r.step.request.Messages {
		for _, c := range r.step.request.Messages[i].Calls() {
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
		if last && !ours(c.Name) {
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

// send asks for another round: the rounds so far go to the log, and what is
// rendered from it to the provider.
func (r *rounds) send() (*http.Response, error) {
	r.n++
	ctx := r.x.request.Context()
	v := r.x.guarded(ctx, "round", r.prepare)
	if v.action == Passed {
		return nil, errRound
	}
	res, err := r.x.send(v)
	if err != nil || r.x.refusal(res, v) != llm.ErrOverflow {
		return res, err
	}
	_, res, err = r.x.harder(ctx, v, res)
	return res, err
}

// errRound ends an answer that cannot go on because something failed here. The
// client tries again, and is answered anew.
var errRound = errors.New("what was removed cannot be read now")

func (r *rounds) prepare(x *exchange, ctx context.Context) (verdict, error) {
	ask, news := r.step.ask, r.news()
	ask.Messages = news
	var rep report
	rendered, err := r.step.thread.PrepareStep(context.WithValue(ctx, reportKey{}, &rep), ask)
	if err != nil {
		return verdict{step: r.step}, err
	}
	r.logged += len(news)
	return x.finish(ctx, r.step, rendered, &rep, true)
}

// news are the messages of the rounds that the log does not hold yet.
func (r *rounds) news() []thread.Message {
	stem := digest(string(r.step.ids[len(r.step.ids)-1]))
	var news []thread.Message
	for i := r.logged; i < len(r.hidden); i++ {
		m := detacher{}.message(r.hidden[i])
		m.ID = thread.ID(fmt.Sprintf("%s%s-%d", hiddenPrefix, stem, i))
		news = append(news, m)
	}
	return news
}

// keep writes the rounds to the log before the client hears of their end. A store
// that fails costs no more than the knowledge of them.
func (r *rounds) keep() {
	if len(r.hidden) == 0 {
		return
	}
	ctx := context.WithoutCancel(r.x.request.Context())
	r.x.guarded(ctx, "rounds", func(_ *exchange, ctx context.Context) (verdict, error) {
		return verdict{step: r.step}, r.step.thread.FinishStep(ctx, llm.Usage{}, r.news()...)
	})
}

// stream is the body of an answer that is read for calls of our tools while it
// passes. It is read by one goroutine.
type stream struct {
	*rounds
	translator translator
	body       io.ReadCloser // of the round that is read now
	events     *events
	out        []byte
	err        error // at the end of out
	ended      bool  // the client was told all: the rest passes as it comes
}

// Read gives the client the next bytes.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.out) == 0 && s.err == nil {
		s.more()
	}
	if len(s.out) == 0 {
		return 0, s.err
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// Close ends the round that is read now.
func (s *stream) Close() error {
	if s.err == nil {
		s.err = http.ErrBodyReadAfterClose
	}
	return s.body.Close()
}

// more takes one event.
func (s *stream) more() {
	defer func() {
		if p := recover(); p != nil {
			s.x.fault("stream", fmt.Errorf("%w: %v", errPanic, p), verdict{step: s.step})
			s.out, s.err = nil, io.ErrUnexpectedEOF
		}
	}()
	e, err := s.events.next()
	switch {
	case s.ended:
		s.out, s.err = e.raw, err
		return
	case err != nil:
		s.finish(e.raw, err)
		return
	case e.data != "" && strings.TrimSpace(e.data) != "[DONE]" && !gjson.Valid(e.data):
		// Nobody here understands the stream: from now on it passes as it comes.
		s.out, s.ended = append(s.translator.end(ending{}), e.raw...), true
		return
	}
	out, last := s.translator.next(e)
	s.out = out
	if last {
		s.finish(nil, nil)
	}
}

// finish decides at the end of a round. Without an end that was understood
// everything passes as it came.
func (s *stream) finish(tail []byte, err error) {
	m, whole := s.translator.said()
	if !whole {
		s.out, s.err, s.ended = append(append(s.out, s.translator.end(ending{})...), tail...), err, true
		return
	}
	what := s.take(m)
	if what == goesOn {
		s.next()
		return
	}
	s.keep()
	s.out = append(append(s.out, s.translator.end(ending{dangling: what == tooOften})...), tail...)
	s.err, s.ended = err, true
}

// next goes on with another round.
func (s *stream) next() {
	s.body.Close()
	res, err := s.send()
	if err != nil {
		s.out, s.err = append(s.out, s.translator.end(ending{failure: "the provider gave no answer"})...), io.EOF
		return
	}
	s.body = res.Body
	plain, err := decoder(res.Header, res.Body)
	if plain == nil {
		plain = res.Body
	}
	if err != nil || res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		message := "the provider refused a further request"
		if f := llm.Failure(s.x.endpoint.dialect.API(), res.StatusCode, said); f != nil {
			message = f.Message
		}
		s.out, s.err = append(s.out, s.translator.end(ending{failure: message})...), io.EOF
		return
	}
	s.events = newEvents(plain)
	s.translator.again()
}
