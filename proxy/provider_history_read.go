package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// historyReader reads requests that do not hold their whole history: the provider holds it, or a
// compaction that was made here stands for it. Each API that has such things has its own.
type historyReader interface {
	// read finds the history. A *native.Refusal is the answer; any other error is a fault of ours.
	read(ctx context.Context) (reading, error)
	// fallback is the body that is sent if read fails: without compactions of ours. Empty is the
	// client's own.
	fallback() string
}

// reading is what was read of such a request. The zero value leaves it as it is.
type reading struct {
	// held is the history; nil if the request has its own.
	held *heldHistory
	// body goes to the provider in place of the client's; empty keeps that.
	body string
	// items are the history as it was written, in the Responses API.
	items []string
}

// The marks of requests that do not hold their history. A search is fast for a text that begins
// with a rare letter.
const (
	threadMark       = `"thread"`
	responseMark     = `_response_id"`
	conversationMark = `"conversation"`
	conversationEnd  = `versation"`
	longestMark      = 32 // bytes; native.Prefix is shorter
)

// reader returns the one for a request; nil if a look at the bytes shows that it has its history. Bytes
// that the step before had too are not searched again; similar says which those are.
func (hs *histories) reader(x *received) (reader historyReader, similar identify.Similar) {
	api := x.endpoint.dialect.API()
	if api != wire.Anthropic && api != wire.Responses || x.decompressErr != nil {
		return nil, similar
	}
	similar = hs.requests.Similar(api, x.plainBody)
	body := similar.Unsearched(longestMark)
	ours := strings.Contains(body, native.Prefix)
	held := api == wire.Anthropic && strings.Contains(body, threadMark) ||
		api == wire.Responses && (strings.Contains(body, responseMark) || strings.Contains(body, conversationEnd) && strings.Contains(body, conversationMark))
	similar.Unmarked = !ours && !held
	switch {
	case api == wire.Responses && (ours || held):
		return responsesReader{hs, x}, similar
	case ours || held && gjson.Get(x.plainBody, "thread").IsObject():
		return messagesReader{hs, x}, similar
	}
	return nil, similar
}

// readHistory is the request with its history. A *native.Refusal says that the provider need not be asked.
func (hs *histories) readHistory(x *received) (*received, error) {
	next := *x
	reader, similar := hs.reader(x)
	next.similar = similar
	if reader == nil {
		return &next, nil
	}
	ctx := x.request.Context()
	found, err := failsafe.Within(ctx, hs.options.Deadline, reader.read)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return nil, refusal
	}
	if err != nil {
		hs.emitFault(x, "native", err, nil)
		// The request would be refused without this, however short the deadline is.
		found.held = nil
		found.body, err = failsafe.Within(ctx, max(hs.options.Deadline, defaultDeadline), func(context.Context) (string, error) { return reader.fallback(), nil })
		if err != nil {
			hs.emitFault(x, "native", err, nil)
		}
	}
	next.held = found.held
	if found.body != "" {
		next = next.withBody(found.body)
	}
	return &next, nil
}

// withBody is the request with a body of ours in place of the client's.
func (x received) withBody(body string) received {
	x.body, x.plainBody, x.rewritten = body, body, true
	h := x.request.Header.Clone()
	h.Del("Content-Encoding")
	own := *x.request
	own.Header = h
	x.request = &own
	return x
}

func refusalAnswer(r *http.Request, why *native.Refusal) *http.Response {
	return httpbody.NewAnswer(r, why.Status(), httpbody.JSON, why.Body())
}
