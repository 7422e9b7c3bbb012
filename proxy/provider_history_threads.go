package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// messageThreads continues the message threads of the Anthropic API: thread says
// {"type":"create"}, and later {"type":"continue","previous_message_id":ID} with only the
// new messages, without system and tools. The official SDKs run tools over them.
// https://docs.anthropic.com/en/api/messages (thread)
type messageThreads struct{ nativeMessages }

func (n messageThreads) apply(ctx context.Context) (emulation, error) {
	m, err := native.ReadMessages(n.plainBody)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	previous, ok := m.Thread()
	emulated := n.emulated()
	switch {
	case !ok:
		return n.nativeMessages.apply(ctx)
	case strings.Contains(n.plainBody, native.Prefix), emulated && m.ReadCompaction() == nil && (m.Managed || m.OnDemand):
		// Providers do not compact threads either: the client then sends the whole history.
		return emulation{answer: threadRefusal(n.request, "thread_unsupported_request", `,"unsupported":["context_management"]`, "threads and context management do not go together here: send the messages themselves")}, nil
	}
	out := emulation{}
	if emulated {
		out = n.withoutBetaHeader()
	}
	added, cacheTTL := m.WithoutCacheMarks()
	key := n.endpoint.responseKey(previous)
	h := &heldHistory{kind: heldThread, name: key, previous: key, stored: true, newMessages: added, cacheTTL: cacheTTL, threadMembers: m.ThreadMembers()}
	out.held = h
	c := &heldChain{} // of a thread that begins
	if previous != "" {
		if c, err = n.t.responses.resolve(ctx, key); c == nil || err != nil {
			return out, err
		}
		h.threadMembers = c.threadMembers
	}
	h.known, h.incomplete = true, c.incomplete
	h.rebuilt = &rebuiltRequest{
		loggedHistory: c.loggedHistory, body: m.WithHistory(c.threadMembers, slices.Concat(c.items, added)),
		mustReplaceBody: c.incomplete || n.endpoint.task == count, // no count knows threads
	}
	return out, nil
}

// threadRefusal is an answer, of status 400 or 404, with an error code on which clients send
// their history themselves.
func threadRefusal(r *http.Request, code, details, message string) *http.Response {
	status, kind := http.StatusBadRequest, "invalid_request_error"
	if code == "thread_not_found" {
		status, kind = http.StatusNotFound, "not_found_error"
	}
	return httpbody.NewAnswer(r, status, httpbody.JSON, `{"type":"error","error":{"type":"`+kind+`","message":`+rawjson.Quote(message)+`,"details":{"error_code":"`+code+`"`+details+`}}}`)
}

// threadNotFound has the client send its whole history, in a new thread.
func threadNotFound(r *http.Request) *http.Response {
	return threadRefusal(r, "thread_not_found", "", "the history of the thread is not known here, and does not fit the context window any more: send the messages themselves")
}

// watchMessage calls save with an answer of the Messages API, before the client gets the end
// of it.
func (x *exchange) watchMessage(res *http.Response, save func(providerAnswer)) {
	saveRead := func(a wire.Answer, err error) {
		if err == nil && a.Message.Frame != nil {
			save(providerAnswer{a.ID, []string{a.Message.Frame.Raw()}})
		}
	}
	stream, broken := x.endpoint.dialect.NewStream(), false
	httpbody.RewriteAnswer(res, x.emitStreamFault, func(body string) string {
		saveRead(x.endpoint.dialect.DecodeAnswer([]byte(body)))
		return body
	}, func(e sse.Event) []byte {
		now, err := stream.Event(e.Data)
		if broken = broken || err != nil; now.Done && !broken {
			saveRead(stream.Answer())
		}
		return e.Raw
	})
}
