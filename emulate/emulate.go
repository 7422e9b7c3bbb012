// Package emulate does the providers' own compaction for upstreams that lack it: the context
// management and the summaries on demand of the Anthropic Messages API, and the compaction of
// OpenAI's Responses API. It stands in front of a proxy, whose logs, summaries and windows it uses.
package emulate

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// Config is what an Emulator works with.
type Config struct {
	// APIs are those whose upstreams cannot compact, by the names of package wire.
	APIs []string
	// Key returns the key that signs what clients are given.
	Key func(context.Context) ([]byte, error)
	// Model returns what is known of a model, and the counter of its tokens.
	Model func(name string) (token.Model, *token.Counter, error)
	// Summarizer makes the summaries of the Messages API; nil is summarize.Extractive. Answers are
	// what models answered it before.
	Summarizer summarize.Summarizer
	Answers    *llm.Answers
	// Events gets what was compacted, and Fault what failed, with the log if it is known.
	Events event.Sink
	Fault  func(r Request, where string, err error, log string)
	// Deadline bounds how long a request waits for what it asks; Patience, how long it waits after
	// a failure for a form that the upstream takes.
	Deadline, Patience time.Duration
}

// Emulator is an http.RoundTripper in front of a proxy, but for its values: the proxy has read the
// request, and reports its answer, once. It is safe for concurrent use.
type Emulator struct {
	Config

	mu    sync.Mutex
	memos map[*token.Counter]*token.Memo
}

// New returns an emulator.
func New(c Config) *Emulator {
	return &Emulator{Config: c, memos: map[*token.Counter]*token.Memo{}}
}

// Request is a request as the proxy has read it. It is not changed.
type Request struct {
	HTTP *http.Request // its body is not read
	API  string        // as package wire names it
	// Counts says that the tokens of the request are to be counted, Compacts that it is one to
	// /responses/compact; otherwise it asks the model.
	Counts, Compacts bool
	Body             string // decompressed
	Start            time.Time

	// Edited says that the client's own edits made the request smaller: the proxy's policy then
	// leaves it alone, unless the provider refuses it as too long.
	Edited bool
	// Managed says that the client waits for a compaction, which is due from Threshold tokens on;
	// 0 leaves that to the proxy's policy.
	Managed   bool
	Threshold int
}

// Place is where a request ends in the log of its conversation.
type Place struct {
	Log      string
	At       int              // how many messages of the log are of the conversation
	Last     thread.ID        // the last of them
	Messages []thread.Message // they
	// Request is the request with its history, and Items is that as it was written, where the
	// history is that of the provider; System are the instructions that no log holds.
	Request       []thread.Message
	Items, System []string
}

// Proxy is what stands behind an emulator. A *native.Refusal is an error that the client is told.
type Proxy interface {
	// Send sends a request on. The place is nil unless it is Managed and was compacted.
	Send(r Request) (*http.Response, *Place, error)
	// Compact compacts the conversation of a request of the Responses API. After an error the place
	// holds no more than Items.
	Compact(ctx context.Context, r Request) (Place, error)
	// Record appends what is new in a request to the log of its conversation, and returns the id of
	// that; empty if it is not logged.
	Record(ctx context.Context, r Request) (log string)
	// Keep keeps a place with what was answered there, for requests that name the id.
	Keep(ctx context.Context, id string, at Place, output ...string) error
}

// Outcome is what an Emulator did with a request.
type Outcome struct {
	Answered    bool // the upstream was not asked
	Compactions int  // that were made for the answer
}

// made is what was made of a request.
type made struct {
	answer  *http.Response                      // the whole answer; nil if the upstream is asked
	request Request                             // that it is asked with
	reshape func(res *http.Response, at *Place) // of status 200; nil leaves it as it is
	count   int                                 // of compactions
}

// RoundTrip does what a request asks of its provider beside an answer, and sends it on without
// that, if it is still needed.
func (e *Emulator) RoundTrip(r Request, to Proxy) (*http.Response, Outcome, error) {
	m := made{request: r}
	if x := e.emulation(r, to); x != nil {
		ctx := r.HTTP.Context()
		var err error
		m, err = failsafe.Within(ctx, e.Deadline, x.apply)
		if refusal, ok := errors.AsType[*native.Refusal](err); ok {
			m, err = made{answer: refusalAnswer(r.HTTP, refusal)}, nil
		}
		if err != nil {
			e.Fault(r, "native", err, "")
			// The request would be refused without this, however short the deadline is.
			m, err = failsafe.Within(ctx, max(e.Deadline, e.Patience), func(context.Context) (made, error) { return x.fallback(), nil })
			if err != nil {
				e.Fault(r, "native", err, "")
				m = made{request: r}
			}
		}
	}
	if m.answer != nil {
		return m.answer, Outcome{true, m.count}, nil
	}
	res, at, err := to.Send(m.request)
	if err == nil && m.reshape != nil && res.StatusCode == http.StatusOK {
		m.reshape(res, at)
	}
	return res, Outcome{false, m.count}, err
}

// emulation is the part of an API.
type emulation interface {
	// apply does what the request asks. A *native.Refusal is the answer; any other error is a fault
	// of ours.
	apply(ctx context.Context) (made, error)
	// fallback is what is sent if apply fails: the request without what the upstream does not know.
	fallback() made
}

// emulation is that of a request; nil if a look at it shows that it asks for nothing.
func (e *Emulator) emulation(r Request, to Proxy) emulation {
	w := work{Emulator: e, r: r, to: to}
	switch asks := mayAskCompaction(r.Body); {
	case !slices.Contains(e.APIs, r.API):
		return nil
	case r.API == wire.Responses && (asks || r.Compacts):
		return responses{w}
	case r.API == wire.Anthropic && (asks || namesBetas(r.HTTP.Header, emulatedBetas...)):
		return messages{w}
	}
	return nil
}

func mayAskCompaction(body string) bool {
	return strings.Contains(body, `_management"`) || strings.Contains(body, `mpaction`) && strings.Contains(body, `"compaction`)
}

// work is the work on one request.
type work struct {
	*Emulator
	r  Request
	to Proxy
}

func (w work) streamFault(err error) { w.Fault(w.r, "stream", err, "") }

// seal signs a token.
func (w work) seal(ctx context.Context, t native.Token) (string, error) {
	key, err := w.Key(ctx)
	if err != nil {
		return "", err
	}
	return native.Seal(key, t), nil
}

// memo counts as a model does, and remembers its counts.
func (e *Emulator) memo(model string) (*token.Memo, error) {
	_, c, err := e.Model(model)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.memos[c] == nil {
		e.memos[c] = token.NewMemo(c, 0)
	}
	return e.memos[c], nil
}

func refusalAnswer(r *http.Request, why *native.Refusal) *http.Response {
	return httpbody.NewAnswer(r, http.StatusBadRequest, httpbody.JSON, why.Body())
}

// with is the request with another body.
func (r Request) with(body string) Request {
	r.Body = body
	return r
}

// withHeader is the request with other headers.
func (r Request) withHeader(h http.Header) Request {
	own := *r.HTTP
	own.Header = h
	r.HTTP = &own
	return r
}
