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

// begin implements emulator.
func (n messageThreads) begin(ctx context.Context, body string, emulated bool) (emulation, error) {
	own := nativeMessages(n)
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	previous, ok := m.Thread()
	switch {
	case !ok:
		return own.begin(ctx, body, emulated)
	case strings.Contains(body, native.Prefix), emulated && m.Ask() == nil && (m.Managed || m.OnDemand):
		// Providers do not compact threads either: the client sends the whole then.
		return emulation{answer: n.refused("thread_unsupported_request", `,"unsupported":["context_management"]`, "threads and context management do not go together here: send the messages themselves")}, nil
	}
	out := emulation{}
	if emulated {
		out = own.plain()
	}
	added, marked := m.Unmarked()
	h := &providerState{name: n.endpoint.answerName(previous), prev: n.endpoint.answerName(previous), keeps: true, word: "thread", added: added, marked: marked, around: m.Around(), unknown: n.notFound}
	out.state = h
	strict := n.endpoint.task == count // no count knows of threads
	if previous == "" {
		h.known, h.rebuilt = true, &rebuilt{body: m.Whole("", added), strict: strict}
		return out, nil
	}
	c, err := n.t.responses.follow(ctx, h.name)
	if c == nil || err != nil {
		return out, err
	}
	h.known, h.part, h.around = true, c.part, c.around
	h.rebuilt = &rebuilt{history: c.history, body: m.Whole(c.around, slices.Concat(c.items, added)), strict: c.part || strict}
	return out, nil
}

// stripped implements emulator.
func (n messageThreads) stripped(body string, emulated bool) emulation {
	return nativeMessages(n).stripped(body, emulated)
}

// refused is the answer, of status 400 or 404, with an error code on which clients send their
// history themselves.
func (n messageThreads) refused(code, details, message string) *http.Response {
	status, kind := http.StatusBadRequest, "invalid_request_error"
	if code == "thread_not_found" {
		status, kind = http.StatusNotFound, "not_found_error"
	}
	return answering(n.request, status, jsonKind, `{"type":"error","error":{"type":"`+kind+`","message":`+rawjson.Quote(message)+`,"details":{"error_code":"`+code+`"`+details+`}}}`)
}

// notFound has the client send its whole history, in a new thread.
func (n messageThreads) notFound() *http.Response {
	return n.refused("thread_not_found", "", "the history of the thread is not known here, and does not fit the context window any more: send the messages themselves")
}

// show hands an answer on, and tells of it once it is whole, before the client has the end of it.
func (n messageThreads) show(res *http.Response, whole func(answer)) {
	told := func(a wire.Answer, err error) {
		if err == nil && a.Message.Frame != nil {
			whole(answer{a.ID, []string{a.Message.Frame.Raw()}})
		}
	}
	said, odd := n.endpoint.dialect.NewStream(), false
	n.shaped(res, func(body string) string {
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
