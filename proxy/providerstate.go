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
	// previous is the answer that stands before the added messages, under its name here; it is
	// the name itself but in a conversation, which conversation is the id of.
	previous, conversation string
	// addedBefore is how many of the added messages the client had put into the conversation before.
	addedBefore int
	// stored: the provider keeps the answer, so that a later request can name it.
	stored bool
	// refusalWord is in whatever the provider says when it cannot go on with the history.
	refusalWord string
	// newMessages are the messages of the request itself, as the client wrote them, and around
	// the members that the first request of a thread has alone.
	newMessages   []string
	threadMembers string
	// rebuilt is nil where the client's own body is the whole request.
	rebuilt *rebuiltRequest
	// known: the history behind the name is known here. part: the provider was sent less
	// than that.
	known, incomplete bool
	// cacheTTL is the time to live of the cache mark that the messages of the request have;
	// nil where they have none.
	cacheTTL *string
	// unknownAnswer is what a client is told that has to send its whole history; nil where no
	// answer would have it do so.
	unknownAnswer func() *http.Response
}

// mustReplaceBody reports whether the client's own bytes are nothing that the provider
// could answer.
func (m emulation) mustReplaceBody() bool {
	return m.providerState != nil && m.providerState.rebuilt != nil && m.providerState.rebuilt.mustReplaceBody
}

// withCachePoint returns a prompt that is cached up to its end, as the client asked for with the marks that were
// taken off: where nothing was removed the marks of a prompt are the client's own.
func (h *providerState) withCachePoint(p *prompt.Prompt) *prompt.Prompt {
	if h == nil || h.cacheTTL == nil || len(p.CachePoints) > 0 || len(p.Messages) == 0 {
		return p
	}
	out := *p
	out.CachePoints = []prompt.CachePoint{{After: len(p.Messages) - 1, TTL: *h.cacheTTL}}
	return &out
}

// storeFalse says that the provider is not to keep a response.
var storeFalse = regexp.MustCompile(`"store"\s*:\s*false`)

// isAnswerStored reports whether the provider keeps the answer, and what is behind it is known
// here, so that a later request can go on with it.
func (x *exchange) isAnswerStored() bool {
	switch h := x.emulation.providerState; {
	case x.endpoint.task != generate:
		return false
	case h != nil:
		return h.stored && (h.name == "" || h.known)
	case x.endpoint.dialect.API() == wire.Responses:
		return x.request.Header.Get("Content-Encoding") == "" && !storeFalse.MatchString(x.body)
	}
	return false
}

// recordAnswer shows the client the compaction that it asked for in the answer, and remembers
// the answer where the provider holds it.
func (x *exchange) recordAnswer(res *http.Response, d decision) {
	item := ""
	if a := x.emulation.responses; d.action == Compacted && a != nil && a.emulated && d.step != nil {
		item = nativeResponses{x}.compactionOf(d.step)
	}
	whole := func(providerAnswer) {}
	if x.isAnswerStored() {
		whole = func(a providerAnswer) {
			h := x.emulation.providerState
			if h == nil {
				h = &providerState{}
			}
			x.recordLink(d.step, h.conversation, func(ctx context.Context) error { return x.saveResponse(ctx, d, a) })
			if h.conversation != "" && d.action != Passed && d.retry != retryWholeHistory {
				x.bestEffort(context.WithoutCancel(x.request.Context()), "conversation", d.step, func(ctx context.Context) error {
					return x.addToConversation(ctx, h.conversation, slices.Concat(h.newMessages[h.addedBefore:], a.messages))
				})
			}
		}
	} else if item == "" {
		return
	}
	if x.endpoint.dialect.API() == wire.Anthropic {
		messageThreads{x}.watchAnswer(res, whole)
		return
	}
	nativeResponses{x}.insertItem(res, item, func(response string) {
		switch gjson.Get(response, "status").Str {
		case "", "completed", "incomplete":
			whole(providerAnswer{gjson.Get(response, "id").Str, rawElements(gjson.Get(response, "output"))})
		} // others go on in the background
	})
}

// recordLink writes down which answer goes on with which. A conversation of which that fails is not known any
// more; it is empty for what goes on with an answer.
func (x *exchange) recordLink(s *step, conversation string, f func(context.Context) error) {
	if !x.bestEffort(context.WithoutCancel(x.request.Context()), "link", s, f) && conversation != "" {
		x.t.lostConversations.Put(conversation, true, 1)
	}
}

// providerAnswer is what a provider answered: the id, under which the client names it later, and the
// messages or items that stand for it in a history.
type providerAnswer struct {
	id       string
	messages []string
}

// isHistoryRefused reports whether a provider refuses to go on with a history that is known
// here: it has forgotten it, or it holds none at all.
func (x *exchange) isHistoryRefused(res *http.Response, d decision, why refusal) bool {
	h := x.emulation.providerState
	return d.action == Passed && h != nil && h.known && h.rebuilt != nil && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(strings.ToLower(why.text), h.refusalWord)
}

// withWholeHistory decides again, with the whole conversation in the place of its name.
func (x *exchange) withWholeHistory(ctx context.Context) decision {
	own, h, r := *x, *x.emulation.providerState, *x.emulation.providerState.rebuilt
	r.mustReplaceBody, h.rebuilt, h.incomplete = true, &r, true
	own.emulation.providerState = &h
	return own.decideOrForward(ctx, "prepare", own.decide)
}

// unknownHistoryAnswer is the answer for a client that names a history which nobody here has seen,
// and that does not fit: it has to send the whole. For others it is what the provider says.
func (x *exchange) unknownHistoryAnswer(res *http.Response) *http.Response {
	if h := x.emulation.providerState; h != nil && h.name != "" && !h.known && h.unknownAnswer != nil {
		res.Body.Close()
		return h.unknownAnswer()
	}
	return res
}

// saveResponse saves what is behind an answer, for a request that names it later.
func (x *exchange) saveResponse(ctx context.Context, d decision, a providerAnswer) error {
	h := x.emulation.providerState
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
	k := &storedResponse{Made: x.start.UnixNano(), Incomplete: h.incomplete || d.retry == retryWholeHistory || d.action != Passed, Output: rawMessages(a.messages)}
	switch {
	case d.step != nil:
		at, _, err := x.t.logPosition(ctx, d.step.logID, d.step.parsed)
		if err != nil {
			return err
		}
		k.loggedHistory = at
		k.System, k.ThreadMembers = instructions(d.step.parsed.Prompt), json.RawMessage(h.threadMembers)
	case h.rebuilt != nil && h.rebuilt.Log != "":
		return nil // what went out is not what the log holds
	default:
		k.Previous, k.Input = h.previous, rawMessages(h.newMessages)
		if h.name == "" {
			k.ThreadMembers = json.RawMessage(h.threadMembers)
		}
	}
	if err := x.t.responses.save(ctx, x.endpoint.responseKey(a.id), k); err != nil || h.conversation == "" {
		return err
	}
	return x.t.responses.update(ctx, h.conversation, h.continueConversation(a.id, k.Made))
}

// continueConversation makes of a conversation the one behind one more response: what was put into it meanwhile
// stands behind that. Where two responses were asked for at once nobody knows their order.
func (h *providerState) continueConversation(id string, made int64) func(*storedResponse) *storedResponse {
	return func(now *storedResponse) *storedResponse {
		if now == nil || now.Previous != h.previous || len(now.Input) < h.addedBefore {
			return nil
		}
		return &storedResponse{Made: made, Previous: id, Input: now.Input[h.addedBefore:]}
	}
}

// responseKey is the name under which an answer of an endpoint is remembered: the ids of
// two providers could be the same.
func (e endpoint) responseKey(id string) string {
	if id != "" && e.dialect.API() == wire.Anthropic {
		return "anthropic:" + id
	}
	return id
}

// unknownResponse is the refusal on which clients send their history themselves.
func (x *exchange) unknownResponse(id string) *http.Response {
	return refusalAnswer(x.request, &native.ResponsesRefusal{Param: "previous_response_id", Code: "previous_response_not_found", Message: "Previous response with id '" + id + "' not found."})
}

// responseState is a request of the Responses API as one of a history that the provider
// holds.
func (x *exchange) responseState(r *native.Responses) *providerState {
	if r.Conversation {
		// Its items are kept whatever becomes of the response. A client has no other copy of them.
		return &providerState{name: r.ConversationID, conversation: r.ConversationID, stored: r.ConversationID != "", refusalWord: "conversation", newMessages: r.Items}
	}
	return &providerState{
		name: r.Previous, previous: r.Previous, stored: r.Stored, refusalWord: "previous", newMessages: r.Items,
		unknownAnswer: func() *http.Response { return x.unknownResponse(r.Previous) },
	}
}

// acceptsOnlyReadable reports whether all encodings that a client accepts can be read
// here.
func acceptsOnlyReadable(h http.Header) bool {
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
