package proxy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// recordAnswer remembers an answer that the provider keeps.
func (hs *histories) recordAnswer(x *received, res *http.Response, d decision) {
	if !x.isAnswerStored(d) {
		return
	}
	save := func(a providerAnswer) { hs.saveAnswer(x, d, a) }
	if x.endpoint.dialect.API() == wire.Anthropic {
		hs.watchMessage(x, res, save)
		return
	}
	watchResponse(res, func(err error) { hs.emitFault(x, "stream", err, nil) }, save)
}

// conversation is the id of the conversation; empty for other kinds.
func (h *heldHistory) conversation() string {
	if h.kind != heldConversation {
		return ""
	}
	return h.name
}

// heldByResponses is the history that a request of the Responses API continues.
func heldByResponses(r *native.Responses) *heldHistory {
	if r.Conversation {
		// Its items are kept even if the response is not: the client has no other copy.
		return &heldHistory{kind: heldConversation, name: r.ConversationID, stored: r.ConversationID != "", newMessages: r.Items}
	}
	return &heldHistory{kind: heldResponse, name: r.Previous, previous: r.Previous, stored: r.Stored, newMessages: r.Items}
}

// logPosition is where a request ends in its log, and the messages up to there.
func (cv *conversations) logPosition(ctx context.Context, id string, r *parsedRequest) (loggedHistory, []thread.Message, error) {
	log, err := cv.log.Load(ctx, id)
	if err != nil {
		return loggedHistory{}, nil, err
	}
	last := r.IDs[len(r.IDs)-1]
	at, found := log.Index(last)
	if !found {
		if at = log.Len() - 1; at < 0 {
			return loggedHistory{}, nil, errHistoryChanged
		}
		last = log.At(at).ID
	}
	return loggedHistory{id, at + 1, last}, log.Messages()[:at+1], nil
}

// addToConversation puts items into a conversation that the provider would have put there by
// itself, had the request named the conversation. The client can then list them, and the
// provider holds the whole without us.
func addToConversation(ctx context.Context, base http.RoundTripper, continued *http.Request, id string, items []string) error {
	items = slices.DeleteFunc(slices.Clone(items), func(item string) bool { return strings.Contains(item, native.Prefix) })
	for some := range slices.Chunk(items, maxItems) {
		r := continued.Clone(ctx)
		r.URL.Path = strings.TrimSuffix(r.URL.Path, "/responses") + "/conversations/" + id + "/items"
		r.URL.RawPath = ""
		r.Header.Del("Content-Encoding")
		r.Header.Del("Idempotency-Key") // it is that of the request for the answer
		r.Header.Set("Content-Type", httpbody.JSON)
		body := []byte(`{"items":[` + strings.Join(some, ",") + `]}`)
		res, err := sendToProvider(base, withBody(r, len(body), func() io.Reader { return bytes.NewReader(body) }))
		if err != nil {
			return fmt.Errorf("conversation %s: %w", id, err)
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, httpbody.MaxAnswer)) // so that the connection can be used again
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("conversation %s: %d items: %w", id, len(some), &llm.APIError{Kind: llm.ErrResponse, Status: res.StatusCode})
		}
	}
	return nil
}

// maxItems is how many items a conversation takes at once.
const maxItems = 20

// watchMessage calls save with an answer of the Messages API, before the client gets the end
// of it.
func (hs *histories) watchMessage(x *received, res *http.Response, save func(providerAnswer)) {
	saveRead := func(a wire.Answer, err error) {
		if err == nil && a.Message.Frame != nil {
			save(providerAnswer{a.ID, []string{a.Message.Frame.Raw()}})
		}
	}
	stream, broken := x.endpoint.dialect.NewStream(), false
	httpbody.RewriteAnswer(res, func(err error) { hs.emitFault(x, "stream", err, nil) }, func(body string) string {
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

// watchResponse calls save with an answer of the Responses API, before the client gets the end of it.
func watchResponse(res *http.Response, failed func(error), save func(providerAnswer)) {
	saveRead := func(response gjson.Result, output []string) {
		switch response.Get("status").Str {
		case "", "completed", "incomplete":
			save(providerAnswer{response.Get("id").Str, output})
		} // others go on in the background
	}
	var streamed streamedOutput
	httpbody.RewriteAnswer(res, failed, func(body string) string {
		if response := gjson.Parse(body); rawjson.Valid(body) {
			saveRead(response, rawjson.RawItems(response.Get("output"), nil))
		}
		return body
	}, func(e sse.Event) []byte {
		if response, output, ended := streamed.read(e.Data); ended {
			saveRead(response, output)
		}
		return e.Raw
	})
}

// streamedOutput collects the output of a response that is streamed.
type streamedOutput struct{ items []string }

// read takes the next event, and returns the response that it ends, if it ends one. Its output are the items before
// it where it names fewer, as some servers send them only once.
func (o *streamedOutput) read(event string) (response gjson.Result, output []string, ended bool) {
	switch gjson.Get(event, "type").Str {
	case "response.output_item.done":
		o.items = append(o.items, gjson.Get(event, "item").Raw)
	case "response.completed", "response.incomplete":
		response = gjson.Get(event, "response")
		if output = rawjson.RawItems(response.Get("output"), nil); len(output) < len(o.items) {
			output = o.items
		}
		return response, output, true
	}
	return response, nil, false
}

// saveAnswer remembers the history behind an answer. A conversation that the provider was not
// asked in gets the messages as well.
func (hs *histories) saveAnswer(x *received, d decision, a providerAnswer) {
	h := x.held
	h = cmp.Or(h, &heldHistory{})
	hs.recordLink(x, d.step, h.conversation(), func(ctx context.Context) error { return hs.saveResponse(ctx, x, d, a) })
	if h.conversation() != "" && d.action != Passed && d.retry != retryWholeHistory {
		hs.bestEffort(x, "conversation", d.step, func(ctx context.Context) error {
			return addToConversation(ctx, hs.options.Base, x.request, h.name, slices.Concat(h.newMessages[h.addedBefore:], a.messages))
		})
	}
}

// providerAnswer is what a provider answered: the id by which the client names it later, and
// the messages or items that it is in a history.
type providerAnswer struct {
	id       string
	messages []string
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
	case x.body.Len() > maxResponse:
		return nil
	default:
		r, err := native.ParseResponses(x.body.String())
		if err != nil {
			return err
		}
		h = heldByResponses(r)
	}
	k := &storedResponse{Made: x.start.UnixNano(), Incomplete: h.incomplete || d.retry == retryWholeHistory || d.action != Passed, Output: converted[json.RawMessage](a.messages)}
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
		k.Previous, k.Input = h.previous, converted[json.RawMessage](h.newMessages)
		if h.name == "" {
			k.ThreadMembers = json.RawMessage(h.threadMembers)
		}
	}
	key := x.endpoint.responseKey(a.id)
	if err := hs.responses.save(ctx, key, k); err != nil || h.conversation() == "" {
		return err
	}
	return hs.responses.update(ctx, h.name, h.continueConversation(a.id, k.Made))
}

// instructions are the system and developer messages at the beginning of a request's input.
func instructions(p *prompt.Prompt) []json.RawMessage {
	var list []json.RawMessage
	for _, s := range p.System {
		if s.Role != "instructions" && s.API == wire.Responses {
			list = append(list, json.RawMessage(s.Raw))
		}
	}
	return list
}

// responseKey is the key under which an answer is remembered: ids of two providers could be
// the same.
func (e endpoint) responseKey(id string) string {
	if id != "" && e.dialect.API() == wire.Anthropic {
		return "anthropic:" + id
	}
	return id
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

// forwardConversationChange forwards a request that changes a conversation, and remembers what
// the conversation then holds. A change that cannot be read makes it unknown.
func (hs *histories) forwardConversationChange(r *http.Request, c conversationChange) (*http.Response, error) {
	var items []string
	known := c.kind != conversationShortened
	if known && r.Body != nil {
		body, whole, err := httpbody.Read[string](r.Body, maxResponse, 0, nil)
		if err != nil {
			return nil, err
		}
		if r.Body = httpbody.Rejoin(body, nil, r.Body, r.Body); whole {
			plain, err := httpbody.Decompress(r.Header, body, maxResponse, nil)
			known = err == nil && rawjson.Valid(plain)
			items = rawjson.RawItems(gjson.Get(plain, "items"), nil)
		} else {
			known = false
		}
	}
	if c.kind == conversationCreated {
		httpbody.AcceptReadable(r) // the answer has the id
	}
	res, err := sendToProvider(hs.options.Base, r)
	if err != nil || res.StatusCode != http.StatusOK {
		return res, err
	}
	if c.kind == conversationCreated {
		if body, err := httpbody.ReadAnswer(res); err == nil {
			c.id = gjson.GetBytes(body, "id").Str
		}
	}
	x := &received{request: r, start: time.Now()}
	hs.recordLink(x, nil, c.id, func(ctx context.Context) error {
		return hs.responses.update(ctx, c.id, func(now *storedResponse) *storedResponse {
			switch {
			case !known, c.kind == conversationExtended && now == nil:
				return nil
			case c.kind == conversationCreated:
				return &storedResponse{Made: x.start.UnixNano(), Input: converted[json.RawMessage](items)}
			}
			next := *now
			next.Made, next.Input = x.start.UnixNano(), slices.Concat(now.Input, converted[json.RawMessage](items))
			return &next
		})
	})
	return res, nil
}

// requestForProvider is a request about a response, such as GET /v1/responses/ID, under the
// provider's id.
func (hs *histories) requestForProvider(r *http.Request) *http.Request {
	before, rest, found := strings.Cut(r.URL.Path, "/responses/")
	if !found || r.URL.RawPath != "" {
		return r
	}
	id, rest, deeper := strings.Cut(rest, "/")
	last, other := hs.providerIDs.Get(id)
	if !other {
		return r
	}
	if deeper {
		last += "/"
	}
	out, u := *r, *r.URL
	u.Path = before + "/responses/" + last + rest
	out.URL = &u
	return &out
}

// converted is a list of JSON as texts, or of texts as JSON.
func converted[To, From string | json.RawMessage](list []From) []To {
	out := make([]To, len(list))
	for i, raw := range list {
		out[i] = To(raw)
	}
	return out
}
