package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// heldHistory is a history that the provider holds for the client. A request sends only what
// is new, and names what that continues, or begins such a history.
type heldHistory struct {
	kind heldKind
	// name is the key under which the history is remembered here; empty if the request
	// begins one.
	name string
	// previous is the key of the answer before newMessages: the name itself, except in a
	// conversation.
	previous string
	// newMessages are what the request adds, as the client wrote it. The first addedBefore of
	// them were put into the conversation before.
	newMessages []string
	addedBefore int
	// threadMembers are the members that only the first request of a thread has.
	threadMembers string
	// cacheTTL is the time to live of the cache mark on the new messages; nil if they have
	// none.
	cacheTTL *string
	// stored: the provider keeps the answer, so that a later request can name it.
	stored bool
	// known: the history behind the name is known here. incomplete: the provider was sent
	// less than that.
	known, incomplete bool
	// rebuilt is the request with the history put back in; nil if the client's own body is
	// all there is.
	rebuilt *rebuiltRequest
}

// heldKind is how a provider holds a history. Whatever the provider says when it cannot
// continue one has this word in it.
type heldKind string

const (
	heldResponse     heldKind = "previous"     // OpenAI: the response that previous_response_id names
	heldConversation heldKind = "conversation" // OpenAI
	heldThread       heldKind = "thread"       // Anthropic: a message thread
)

// conversation is the id of the conversation; empty for other kinds.
func (h *heldHistory) conversation() string {
	if h.kind != heldConversation {
		return ""
	}
	return h.name
}

// mustReplaceBody reports whether the provider could not answer the client's own bytes.
func (h *heldHistory) mustReplaceBody() bool {
	return h != nil && h.rebuilt != nil && h.rebuilt.mustReplaceBody
}

// withCachePoint returns the prompt with its end cached, as the client asked for with the mark
// that was taken off its messages. A prompt that nothing was removed from has the client's
// own marks.
func (h *heldHistory) withCachePoint(p *prompt.Prompt) *prompt.Prompt {
	if h == nil || h.cacheTTL == nil || len(p.CachePoints) > 0 || len(p.Messages) == 0 {
		return p
	}
	out := *p
	out.CachePoints = []prompt.CachePoint{{After: len(p.Messages) - 1, TTL: *h.cacheTTL}}
	return &out
}

// storeFalse tells the provider not to keep a response.
var storeFalse = regexp.MustCompile(`"store"\s*:\s*false`)

// isAnswerStored reports whether the provider keeps the answer, and the history before it is
// known here, so that a later request can continue it.
func (x *received) isAnswerStored() bool {
	switch h := x.held; {
	case x.endpoint.task != generate:
		return false
	case h != nil:
		return h.stored && (h.name == "" || h.known)
	case x.endpoint.dialect.API() == wire.Responses:
		return x.request.Header.Get("Content-Encoding") == "" && !storeFalse.MatchString(x.body)
	}
	return false
}

// recordAnswer remembers an answer that the provider keeps.
func (hs *histories) recordAnswer(x *received, res *http.Response, d decision) {
	if !x.isAnswerStored() {
		return
	}
	save := func(a providerAnswer) { hs.saveAnswer(x, d, a) }
	if x.endpoint.dialect.API() == wire.Anthropic {
		hs.watchMessage(x, res, save)
		return
	}
	watchResponse(res, hs.streamFault(x), save)
}

// watchResponse calls save with an answer of the Responses API, before the client gets the end of it.
func watchResponse(res *http.Response, failed func(error), save func(providerAnswer)) {
	saveRead := func(response string) {
		switch gjson.Get(response, "status").Str {
		case "", "completed", "incomplete":
			save(providerAnswer{gjson.Get(response, "id").Str, rawjson.RawItems(gjson.Get(response, "output"), nil)})
		} // others go on in the background
	}
	httpbody.RewriteAnswer(res, failed, func(body string) string {
		if rawjson.Valid(body) {
			saveRead(body)
		}
		return body
	}, func(e sse.Event) []byte {
		switch gjson.Get(e.Data, "type").Str {
		case "response.completed", "response.incomplete":
			saveRead(gjson.Get(e.Data, "response").Raw)
		}
		return e.Raw
	})
}

// providerAnswer is what a provider answered: the id by which the client names it later, and
// the messages or items that it is in a history.
type providerAnswer struct {
	id       string
	messages []string
}

// saveAnswer remembers the history behind an answer. A conversation that the provider was not
// asked in gets the messages as well.
func (hs *histories) saveAnswer(x *received, d decision, a providerAnswer) {
	h := x.held
	if h == nil {
		h = &heldHistory{}
	}
	hs.recordLink(x, d.step, h.conversation(), func(ctx context.Context) error { return hs.saveResponse(ctx, x, d, a) })
	if h.conversation() != "" && d.action != Passed && d.retry != retryWholeHistory {
		hs.bestEffort(x, "conversation", d.step, func(ctx context.Context) error {
			return addToConversation(ctx, hs.options.Base, x.request, h.name, slices.Concat(h.newMessages[h.addedBefore:], a.messages))
		})
	}
}

// recordLink stores which answer continues which. A conversation for which that fails is not
// known any more; conversation is empty if none is continued.
func (hs *histories) recordLink(x *received, s *step, conversation string, f func(context.Context) error) {
	if !hs.bestEffort(x, "link", s, f) && conversation != "" {
		hs.lostConversations.Put(conversation, true, 1)
	}
}

func (hs *histories) saveResponse(ctx context.Context, x *received, d decision, a providerAnswer) error {
	h := x.held
	switch {
	case h != nil:
	case d.step != nil:
		h = &heldHistory{}
	case len(x.body) > maxResponse:
		return nil
	default:
		r, err := native.ParseResponses(x.body)
		if err != nil {
			return err
		}
		h = heldByResponses(r)
	}
	k := &storedResponse{Made: x.start.UnixNano(), Incomplete: h.incomplete || d.retry == retryWholeHistory || d.action != Passed, Output: rawMessages(a.messages)}
	switch {
	case d.step != nil:
		at, _, err := hs.conversations.logPosition(ctx, d.step.logID, d.step.parsed)
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
	if err := hs.responses.save(ctx, x.endpoint.responseKey(a.id), k); err != nil || h.conversation() == "" {
		return err
	}
	return hs.responses.update(ctx, h.name, h.continueConversation(a.id, k.Made))
}

// continueConversation adds a response to a conversation; items that were put into it meanwhile
// stand behind the response. If two responses were asked for at once their order is not
// known, and the conversation is forgotten.
func (h *heldHistory) continueConversation(id string, made int64) func(*storedResponse) *storedResponse {
	return func(now *storedResponse) *storedResponse {
		if now == nil || now.Previous != h.previous || len(now.Input) < h.addedBefore {
			return nil
		}
		return &storedResponse{Made: made, Previous: id, Input: now.Input[h.addedBefore:]}
	}
}

// responseKey is the key under which an answer is remembered: ids of two providers could be
// the same.
func (e endpoint) responseKey(id string) string {
	if id != "" && e.dialect.API() == wire.Anthropic {
		return "anthropic:" + id
	}
	return id
}

// heldByResponses is the history that a request of the Responses API continues.
func heldByResponses(r *native.Responses) *heldHistory {
	if r.Conversation {
		// Its items are kept even if the response is not: the client has no other copy.
		return &heldHistory{kind: heldConversation, name: r.ConversationID, stored: r.ConversationID != "", newMessages: r.Items}
	}
	return &heldHistory{kind: heldResponse, name: r.Previous, previous: r.Previous, stored: r.Stored, newMessages: r.Items}
}

// isHistoryRefused reports whether the provider cannot continue a history that is known here:
// it has forgotten it, or holds none at all.
func (x *received) isHistoryRefused(res *http.Response, d decision, why refusal) bool {
	h := x.held
	return d.action == Passed && h != nil && h.known && res.StatusCode >= 400 && res.StatusCode < 500 && strings.Contains(strings.ToLower(why.text), string(h.kind))
}

// withWholeHistory decides again, with the whole history in place of its name.
func (st *stepper) withWholeHistory(ctx context.Context, x *received) decision {
	own, h, r := *x, *x.held, *x.held.rebuilt
	r.mustReplaceBody, h.rebuilt, h.incomplete = true, &r, true
	own.held = &h
	return st.decideOrForward(ctx, &own, "prepare", func(ctx context.Context) (decision, error) { return st.decide(ctx, &own) })
}

// unknownHistoryAnswer takes the place of an overflow of a history that is not known here: it
// has the client send the whole. If no answer does that, it is the provider's.
func (x *received) unknownHistoryAnswer(res *http.Response) *http.Response {
	h := x.held
	if h == nil || h.name == "" || h.known || h.kind == heldConversation {
		return res
	}
	res.Body.Close()
	if h.kind == heldThread {
		return refusalAnswer(x.request, native.ThreadNotFound())
	}
	return refusalAnswer(x.request, native.ResponseNotFound(h.name))
}
