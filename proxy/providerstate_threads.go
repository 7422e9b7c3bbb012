package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// messageThreads goes on with the message threads of the Anthropic API: thread says
// {"type":"create"}, and then {"type":"continue","previous_message_id":ID} with the new
// messages alone, without system and tools. The official SDKs run tools over them.
// https://docs.anthropic.com/en/api/messages (thread)
type messageThreads struct{ *exchange }

// apply implements emulator.
func (n messageThreads) apply(ctx context.Context, body string, emulated bool) (emulation, error) {
	own := nativeMessages(n)
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	previous, ok := m.Thread()
	switch {
	case !ok:
		return own.apply(ctx, body, emulated)
	case strings.Contains(body, native.Prefix), emulated && m.ReadCompaction() == nil && (m.Managed || m.OnDemand):
		// Providers do not compact threads either: the client sends the whole then.
		return emulation{answer: n.threadRefusal("thread_unsupported_request", `,"unsupported":["context_management"]`, "threads and context management do not go together here: send the messages themselves")}, nil
	}
	out := emulation{}
	if emulated {
		out = own.withoutBetaHeader()
	}
	added, marked := m.WithoutCacheMarks()
	h := &providerState{name: n.endpoint.responseKey(previous), previous: n.endpoint.responseKey(previous), stored: true, refusalWord: "thread", newMessages: added, cacheTTL: marked, threadMembers: m.ThreadMembers(), unknownAnswer: n.threadNotFound}
	out.providerState = h
	strict := n.endpoint.task == count // no count knows of threads
	if previous == "" {
		h.known, h.rebuilt = true, &rebuiltRequest{body: m.WithHistory("", added), mustReplaceBody: strict}
		return out, nil
	}
	c, err := n.t.responses.resolve(ctx, h.name)
	if c == nil || err != nil {
		return out, err
	}
	h.known, h.incomplete, h.threadMembers = true, c.incomplete, c.threadMembers
	h.rebuilt = &rebuiltRequest{loggedHistory: c.loggedHistory, body: m.WithHistory(c.threadMembers, slices.Concat(c.items, added)), mustReplaceBody: c.incomplete || strict}
	return out, nil
}

// fallback implements emulator.
func (n messageThreads) fallback(body string, emulated bool) emulation {
	return nativeMessages(n).fallback(body, emulated)
}

// threadRefusal is the answer, of status 400 or 404, with an error code on which clients send their
// history themselves.
func (n messageThreads) threadRefusal(code, details, message string) *http.Response {
	status, kind := http.StatusBadRequest, "invalid_request_error"
	if code == "thread_not_found" {
		status, kind = http.StatusNotFound, "not_found_error"
	}
	return newAnswer(n.request, status, jsonKind, `{"type":"error","error":{"type":"`+kind+`","message":`+rawjson.Quote(message)+`,"details":{"error_code":"`+code+`"`+details+`}}}`)
}

// threadNotFound has the client send its whole history, in a new thread.
func (n messageThreads) threadNotFound() *http.Response {
	return n.threadRefusal("thread_not_found", "", "the history of the thread is not known here, and does not fit the context window any more: send the messages themselves")
}

// watchAnswer hands an answer on, and tells of it once it is whole, before the client has the end of it.
func (n messageThreads) watchAnswer(res *http.Response, whole func(providerAnswer)) {
	told := func(a wire.Answer, err error) {
		if err == nil && a.Message.Frame != nil {
			whole(providerAnswer{a.ID, []string{a.Message.Frame.Raw()}})
		}
	}
	said, odd := n.endpoint.dialect.NewStream(), false
	n.rewriteAnswer(res, func(body string) string {
		told(n.endpoint.dialect.DecodeAnswer([]byte(body)))
		return body
	}, func(e sse.Event) []byte {
		now, err := said.Event(e.Data)
		if odd = odd || err != nil; now.Done && !odd {
			told(said.Answer())
		}
		return e.Raw
	})
}
