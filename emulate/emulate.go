// Package emulate does the providers' own compaction for upstreams that lack it: the context
// management and the summaries on demand of the Anthropic Messages API, and the compaction of
// OpenAI's Responses API. It stands in front of a proxy, whose logs, summaries and windows it uses.
package emulate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
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
	// Model returns what is known of a model, and the counter of its tokens: one that remembers.
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

// Emulator stands in front of a proxy: it takes a request as the proxy has read it, and gives back
// what is left to send on. It is safe for concurrent use.
type Emulator struct {
	Config
}

// New returns an emulator.
func New(c Config) *Emulator {
	return &Emulator{c}
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
	Request []thread.Message
	Items   []string
	System  []json.RawMessage
}

// Log is the log of conversations behind an emulator. A *native.Refusal is an error that the client is
// told.
type Log interface {
	// Compact compacts the conversation of a request of the Responses API. After an error the place
	// holds no more than Items.
	Compact(ctx context.Context, r Request) (Place, error)
	// Record appends what is new in a request to the log of its conversation, and returns the id of
	// that; empty if it is not logged.
	Record(ctx context.Context, r Request) (log string)
	// Keep keeps a place with what was answered there, for requests that name the id.
	Keep(ctx context.Context, id string, at Place, output ...string) error
}

// Result is what an Emulator made of a request.
type Result struct {
	// Answer is the whole answer; nil if the upstream is asked, with Request.
	Answer  *http.Response
	Request Request
	// Compactions were made for the answer.
	Compactions int
	// Finish has the upstream's answer to Request, of status 200, say what was done; nil leaves it
	// as it is. The place is nil unless Request is Managed and was compacted.
	Finish func(res *http.Response, at *Place)
}

// Do does what a request asks of its provider beside an answer.
func (e *Emulator) Do(r Request, log Log) Result {
	x := e.emulation(r, log)
	if x == nil {
		return Result{Request: r}
	}
	ctx := r.HTTP.Context()
	out, err := failsafe.Within(ctx, e.Deadline, x.apply)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return Result{Answer: refusalAnswer(r.HTTP, refusal)}
	}
	if err != nil {
		e.Fault(r, "native", err, "")
		// The request would be refused without this, however short the deadline is.
		out, err = failsafe.Within(ctx, max(e.Deadline, e.Patience), func(context.Context) (Result, error) { return x.fallback(), nil })
	}
	if err != nil {
		e.Fault(r, "native", err, "")
		return Result{Request: r}
	}
	return out
}

// emulation is the part of an API.
type emulation interface {
	// apply does what the request asks. A *native.Refusal is the answer; any other error is a fault
	// of ours.
	apply(ctx context.Context) (Result, error)
	// fallback is what is sent if apply fails: the request without what the upstream does not know.
	fallback() Result
}

// emulation is that of a request; nil if a look at it shows that it asks for nothing.
func (e *Emulator) emulation(r Request, log Log) emulation {
	w := work{Emulator: e, r: r, log: log}
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
	r   Request
	log Log
}

func (w work) streamFault(err error) { w.Fault(w.r, "stream", err, "") }

func (w work) seal(ctx context.Context, t native.Token) (string, error) {
	key, err := w.Key(ctx)
	if err != nil {
		return "", err
	}
	return native.Seal(key, t), nil
}

func refusalAnswer(r *http.Request, why *native.Refusal) *http.Response {
	return httpbody.NewAnswer(r, http.StatusBadRequest, httpbody.JSON, why.Body())
}

func (r Request) with(body string) Request {
	r.Body = body
	return r
}
