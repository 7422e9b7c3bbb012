package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// providerState is a request whose history the provider holds: it sends what is new alone, and
// names what it goes on with, or begins such a history. There are three of them: the
// responses of OpenAI (previous_response_id), its conversations, and the message
// threads of Anthropic.
type providerState struct {
	// name is under what the answers before it are remembered here; empty where the
	// request begins a history.
	name string
	// prev is the answer that stands before the added messages, under its name here; it is
	// the name itself but in a conversation, which conversation is the id of.
	prev, conversation string
	// put is how many of the added messages the client had put into the conversation before.
	put int
	// keeps: the provider keeps the answer, so that a later request can name it.
	keeps bool
	// word is in whatever the provider says when it cannot go on with the history.
	word string
	// added are the messages of the request itself, as the client wrote them, and around
	// the members that the first request of a thread has alone.
	added  []string
	around string
	// rebuilt is nil where the client's own body is the whole request.
	rebuilt *rebuilt
	// known: the history behind the name is known here. part: the provider was sent less
	// than that.
	known, part bool
	// marked is the time to live of the cache mark that the messages of the request have;
	// nil where they have none.
	marked *string
	// unknown is what a client is told that has to send its whole history; nil where no
	// answer would have it do so.
	unknown func() *http.Response
}

// strict reports whether the client's own bytes are nothing that the provider
// could answer.
func (m emulation) strict() bool {
	return m.state != nil && m.state.rebuilt != nil && m.state.rebuilt.strict
}

// cachedToEnd is a prompt that is cached up to its end, as the client asked for with the marks that were
// taken off: where nothing was removed the marks of a prompt are the client's own.
func (h *providerState) cachedToEnd(p *prompt.Prompt) *prompt.Prompt {
	if h == nil || h.marked == nil || len(p.CachePoints) > 0 || len(p.Messages) == 0 {
		return p
	}
	out := *p
	out.CachePoints = []prompt.CachePoint{{After: len(p.Messages) - 1, TTL: *h.marked}}
	return &out
}

// names reports whether a body has a member that is an object. Inside a text the
// quotes would be escaped.
func names(body, member string) bool {
	return strings.Contains(body, `"`+member+`"`) && gjson.Get(body, member).IsObject()
}

// unstored says that the provider is not to keep a response.
var unstored = regexp.MustCompile(`"store"\s*:\s*false`)

// keeps reports whether the provider keeps the answer, and what is behind it is known
// here, so that a later request can go on with it.
func (x *exchange) keeps() bool {
	switch h := x.native.state; {
	case x.endpoint.task != generate:
		return false
	case h != nil:
		return h.keeps && (h.name == "" || h.known)
	case x.endpoint.dialect.API() == wire.Responses:
		return x.request.Header.Get("Content-Encoding") == "" && !unstored.MatchString(x.body)
	}
	return false
}

// keep shows the client the compaction that it asked for in the answer, and remembers
// the answer where the provider holds it.
func (x *exchange) keep(res *http.Response, d decision) {
	item := ""
	if a := x.native.asked; d.action == Compacted && a != nil && a.emulated && d.step != nil {
		item = nativeResponses{x}.madeItem(d.step)
	}
	whole := func(answer) {}
	if x.keeps() {
		whole = func(a answer) {
			h := x.native.state
			if h == nil {
				h = &providerState{}
			}
			x.linked(d.step, h.conversation, func(ctx context.Context) error { return x.remember(ctx, d, a) })
			if h.conversation != "" && d.action != Passed && d.remedy != wholeHistory {
				x.attempt(context.WithoutCancel(x.request.Context()), "conversation", d.step, func(ctx context.Context) error {
					return x.handOver(ctx, h.conversation, slices.Concat(h.added[h.put:], a.messages))
				})
			}
		}
	} else if item == "" {
		return
	}
	if x.endpoint.dialect.API() == wire.Anthropic {
		messageThreads{x}.show(res, whole)
		return
	}
	nativeResponses{x}.show(res, item, func(response string) {
		switch gjson.Get(response, "status").Str {
		case "", "completed", "incomplete":
			whole(answer{gjson.Get(response, "id").Str, elements(gjson.Get(response, "output"))})
		} // others go on in the background
	})
}

// linked keeps what goes on with what. A conversation of which that fails is not known any
// more; it is empty for what goes on with an answer.
func (x *exchange) linked(s *step, conversation string, f func(context.Context) error) {
	if !x.attempt(context.WithoutCancel(x.request.Context()), "link", s, f) && conversation != "" {
		x.t.lost.Put(conversation, true, 1)
	}
}

// answer is what a provider answered: the id, under which the client names it later, and the
// messages or items that stand for it in a history.
type answer struct {
	id       string
	messages []string
}

// forgotten reports whether a provider refuses to go on with a history that is known
// here: it has forgotten it, or it holds none at all.
func (x *exchange) forgotten(res *http.Response, d decision, why refusal) bool {
	h := x.native.state
	return d.action == Passed && h != nil && h.known && h.rebuilt != nil && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(strings.ToLower(why.said), h.word)
}

// whole is the whole conversation in the place of its name.
func (x *exchange) whole(ctx context.Context) decision {
	own, h, r := *x, *x.native.state, *x.native.state.rebuilt
	r.strict, h.rebuilt, h.part = true, &r, true
	own.native.state = &h
	return own.guarded(ctx, "prepare", own.decide)
}

// unknown is the answer for a client that names a history which nobody here has seen,
// and that does not fit: it has to send the whole. For others it is what the provider says.
func (x *exchange) unknown(res *http.Response) *http.Response {
	if h := x.native.state; h != nil && h.name != "" && !h.known && h.unknown != nil {
		res.Body.Close()
		return h.unknown()
	}
	return res
}

// remember keeps what is behind an answer.
func (x *exchange) remember(ctx context.Context, d decision, a answer) error {
	h := x.native.state
	switch {
	case h != nil:
	case d.step != nil:
		h = &providerState{}
	case len(x.body) > maxResponse:
		return nil
	default:
		r, err := native.ParseResponses(x.body)
		if err != nil {
			return err
		}
		h = x.responseState(r)
	}
	k := &response{Made: x.start.UnixNano(), Part: h.part || d.remedy == wholeHistory || d.action != Passed, Output: raws(a.messages)}
	switch {
	case d.step != nil:
		at, _, err := x.t.position(ctx, d.step.id, d.step.read)
		if err != nil {
			return err
		}
		k.history = at
		k.System, k.Around = instructions(d.step.read.Prompt), json.RawMessage(h.around)
	case h.rebuilt != nil && h.rebuilt.Log != "":
		return nil // what went out is not what the log holds
	default:
		k.Prev, k.Input = h.prev, raws(h.added)
		if h.name == "" {
			k.Around = json.RawMessage(h.around)
		}
	}
	if err := x.t.responses.save(ctx, x.endpoint.answerName(a.id), k); err != nil || h.conversation == "" {
		return err
	}
	return x.t.responses.become(ctx, h.conversation, h.withResponse(a.id, k.Made))
}

// withResponse is a conversation behind one more response: what was put into it meanwhile
// stands behind that. Where two responses were asked for at once nobody knows their order.
func (h *providerState) withResponse(id string, made int64) func(*response) *response {
	return func(now *response) *response {
		if now == nil || now.Prev != h.prev || len(now.Input) < h.put {
			return nil
		}
		return &response{Made: made, Prev: id, Input: now.Input[h.put:]}
	}
}

// answerName is the name under which an answer of an endpoint is remembered: the ids of
// two providers could be the same.
func (e endpoint) answerName(id string) string {
	if id != "" && e.dialect.API() == wire.Anthropic {
		return "anthropic:" + id
	}
	return id
}

// unknownResponse is the refusal on which clients send their history themselves.
func (x *exchange) unknownResponse(id string) *http.Response {
	return refused(x.request, &native.ResponsesRefusal{Param: "previous_response_id", Code: "previous_response_not_found", Message: "Previous response with id '" + id + "' not found."})
}

// responseState is a request of the Responses API as one of a history that the provider
// holds.
func (x *exchange) responseState(r *native.Responses) *providerState {
	if r.Conversation {
		// Its items are kept whatever becomes of the response. A client has no other copy of them.
		return &providerState{name: r.ConversationID, conversation: r.ConversationID, keeps: r.ConversationID != "", word: "conversation", added: r.Items}
	}
	return &providerState{
		name: r.Previous, prev: r.Previous, keeps: r.Stored, word: "previous", added: r.Items,
		unknown: func() *http.Response { return x.unknownResponse(r.Previous) },
	}
}

// readableHere reports whether all encodings that a client accepts can be read
// here.
func readableHere(h http.Header) bool {
	for encoding := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, _, _ := strings.Cut(encoding, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "", "identity", "gzip", "x-gzip", "deflate":
		default:
			return false
		}
	}
	return true
}
