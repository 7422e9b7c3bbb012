package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// asked is what a request of the Responses API asks beside a question to the
// model: a compaction in the provider's own way, or to go on with a history that
// the provider holds.
type asked struct {
	*native.Responses
	// items are the conversation as far as the body of what goes out holds it.
	items []string
	// rebuilt is nil where the client's own body is the whole request.
	rebuilt *rebuilt
	// known: the history behind previous_response_id is known here. held: the
	// provider was sent less than that.
	known, held bool
	// emulated: the compaction that the client manages is made here.
	emulated bool
	// body goes to the provider in place of the client's; nil keeps it.
	body []byte
}

// nativeResponses emulates the compaction of the Responses API, and goes on with
// histories that the provider holds.
type nativeResponses struct{}

// begin implements emulator.
func (nativeResponses) begin(ctx context.Context, x *exchange, body []byte, emulated bool) (*emulation, error) {
	r, err := native.ParseResponses(string(body))
	var invalid *native.ResponsesRefusal
	switch {
	case errors.As(err, &invalid) && (emulated || bytes.Contains(body, []byte(native.Prefix))):
		return &emulation{answer: refused(x.request, invalid)}, nil
	case err != nil:
		return nil, nil // the provider says what is wrong
	}
	a := &asked{Responses: r, items: r.Items}
	if invalid = x.translate(ctx, a, emulated); invalid != nil {
		return &emulation{answer: refused(x.request, invalid)}, nil
	}
	x.asked = a
	if !x.triggered(a, emulated) {
		return &emulation{body: a.body}, nil
	}
	if a.Previous != "" && !a.known {
		return &emulation{answer: refused(x.request, unknownResponse(a.Previous))}, nil
	}
	answer, err := x.compactNow(ctx)
	if err != nil && ctx.Err() == nil {
		x.fault("compaction", err, verdict{})
		answer, err = x.compactInWords(ctx)
	}
	return &emulation{answer: answer}, err
}

// stripped implements emulator.
func (nativeResponses) stripped(x *exchange, body []byte, emulated bool) *emulation {
	r, err := native.ParseResponses(string(body))
	if err != nil {
		return nil
	}
	a := &asked{Responses: r, items: withoutTokens(r.Items)}
	if x.triggered(a, emulated) {
		x.asked = a
		if answer, err := x.compactInWords(x.request.Context()); err == nil {
			return &emulation{answer: answer}
		}
		x.asked = nil
	}
	switch {
	case emulated:
		return &emulation{body: []byte(a.Body(a.items, "context_management"))}
	case !bytes.Contains(body, []byte(native.Prefix)):
		return nil
	case a.Trigger:
		a.items = append(a.items, trigger)
	}
	return &emulation{body: []byte(a.Body(a.items))}
}

// trigger is the item that asks for a compaction.
const trigger = `{"type":"compaction_trigger"}`

// triggered reports whether a request asks for nothing but a compaction, which is
// made here.
func (x *exchange) triggered(a *asked, emulated bool) bool {
	return emulated && (x.endpoint.task == compaction || x.endpoint.task == generate && a.Trigger)
}

// translate makes of a request one that any provider can answer.
func (x *exchange) translate(ctx context.Context, a *asked, emulated bool) *native.ResponsesRefusal {
	var h history
	if a.Previous != "" {
		c, err := x.t.links.follow(ctx, a.Previous)
		if err != nil {
			x.fault("link", err, verdict{}) // as one that nobody knows
		}
		if c != nil {
			a.known, a.held, h = true, c.held, c.history
			a.items = slices.Concat(c.system, c.items, a.Items)
		}
	}
	own, invalid := x.expand(ctx, a, h)
	if invalid != nil {
		return invalid
	}
	var gone []string
	a.emulated = emulated && a.Managed
	if a.emulated {
		gone = append(gone, "context_management")
		a.body = []byte(a.Body(a.Items, gone...))
	}
	triggered := x.triggered(a, emulated)
	if own == nil && (a.known || triggered) {
		own = &rebuilt{history: h, strict: a.held || triggered}
	}
	if own == nil {
		return nil
	}
	tail := []string{}
	if a.Trigger && !emulated {
		tail = append(tail, trigger)
	}
	own.body = a.Body(slices.Concat(a.items, tail), append(gone, "previous_response_id")...)
	if own.fallback != nil {
		if a.known {
			gone = append(gone, "previous_response_id")
		}
		a.body = []byte(a.Body(slices.Concat(own.fallback, tail), gone...))
	}
	a.rebuilt = own
	return nil
}

// expand finds our own compaction among the items. The history that it stands
// for takes the place of everything before it but what the client may have added
// there. It is nil where there is none, or a newer one of somebody else's.
func (x *exchange) expand(ctx context.Context, a *asked, h history) (*rebuilt, *native.ResponsesRefusal) {
	newest, content := -1, ""
	for i, item := range slices.Backward(a.items) {
		if c, ok := native.Compaction(item); ok {
			newest, content = i, c
			break
		}
	}
	if newest < 0 {
		return nil, nil
	}
	if !native.Ours(content) {
		// What stands before somebody else's may go, and what is ours must.
		foreign := slices.DeleteFunc(slices.Clone(a.items), func(item string) bool {
			content, ok := native.Compaction(item)
			return ok && native.Ours(content)
		})
		if len(foreign) == len(a.items) {
			return nil, nil
		}
		a.items = foreign
		return &rebuilt{history: h, strict: true, fallback: foreign}, nil
	}
	token, err := x.opened(ctx, content)
	if err != nil {
		return nil, &native.ResponsesRefusal{Code: "invalid_encrypted_content", Message: "The encrypted content " + clipped(content) + " could not be verified."}
	}
	var kept []string
	for _, item := range a.items[:newest] {
		switch gjson.Get(item, "role").Str {
		case "user", "system", "developer":
			kept = append(kept, item)
		}
	}
	after := a.items[newest+1:]
	r := &rebuilt{history: history{token.Thread, token.At, thread.ID(token.Last)}, strict: true, retained: len(kept) - native.Leading(kept)}
	r.fallback = slices.Concat(kept, []string{recap(token.Summary)}, after)
	a.items = slices.Concat(kept, after)
	if native.Leading(kept) == 0 {
		if k, err := x.t.links.find(ctx, itemID(content)); err == nil && k != nil {
			a.items = slices.Concat(strung(k.System), a.items)
			r.fallback = slices.Concat(strung(k.System), r.fallback)
		}
	}
	if _, err := x.t.load(ctx, r.history); token.Thread == "" || errors.Is(err, errMoved) {
		r.history, r.retained, a.items = history{}, 0, r.fallback // words are all there is
	}
	return r, nil
}

// opened reads a compaction of ours. Where the key cannot be had, its summary is
// all that counts: it is the client's word then.
func (x *exchange) opened(ctx context.Context, content string) (native.Token, error) {
	key, err := x.t.secret.of(ctx, &x.t.options)
	token, forged := native.Open(key, wire.Responses, content)
	if err != nil {
		x.fault("secret", err, verdict{})
		return native.Token{Summary: token.Summary}, nil
	}
	return token, forged
}

// recap says in words what a compaction stands for.
func recap(summary string) string {
	return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + rawjson.Quote("[What happened before, in short; the messages themselves are not here any more.]\n"+summary) + `}]}`
}

// clipped is a token as it stands in a message about it.
func clipped(s string) string {
	if len(s) <= 8 {
		return s
	}
	return s[:4] + "..." + s[len(s)-4:]
}

func refused(r *http.Request, why *native.ResponsesRefusal) *http.Response {
	return answering(r, http.StatusBadRequest, jsonKind, why.Body())
}

// compactNow makes the compaction that the client asks for.
func (x *exchange) compactNow(ctx context.Context) (*http.Response, error) {
	p, err := x.readOn(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.Messages) == 0 {
		return refused(x.request, &native.ResponsesRefusal{Param: "input", Message: "there is nothing to compact: the input holds no message"}), nil
	}
	known := x.t.model(x.modelNameOf(p))
	compactor, err := x.t.compactor(known, x.offers(p))
	if err != nil {
		return nil, err
	}
	s := &step{ids: x.known.ids, request: p, ask: palimpsest.Step{
		Base: p, Profile: render.For(x.endpoint.dialect.API()), Window: limit(known), Output: output(known, p),
	}}
	b, err := x.t.branch(ctx, x.base(p, s.ids), x.scope(p), p.Messages, s.ids)
	if err != nil {
		return nil, err
	}
	s.id, s.thread, s.ask.Messages = b.id, compactor.Thread(b.id), b.news
	var r report
	if _, err = s.thread.PrepareStep(context.WithValue(ctx, reportKey{}, &r), s.ask); err != nil {
		return nil, err
	}
	if !r.completed() {
		ask := s.ask
		ask.Messages, ask.Budget = nil, s.thread.Shown().Tokens
		_, err = s.thread.Compact(ctx, ask, "")
		if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, palimpsest.ErrOverBudget) {
			return nil, err
		}
	}
	x.t.known.remember(thread.ID(x.scope(p))+s.ids[len(s.ids)-1], b.id)
	item, h, err := x.compaction(ctx, s)
	if err != nil {
		return nil, err
	}
	if x.endpoint.task == generate && x.asked.Stored {
		k := &link{Made: x.start.UnixNano(), history: h, System: instructions(p), Output: raws([]string{item}), Held: true}
		if err := x.t.links.save(ctx, x.responseID(item), k); err != nil {
			x.fault("link", err, verdict{step: s})
		}
	}
	return x.compacted(item), nil
}

// compaction is the item that stands for everything that the log of a step holds
// up to the end of its request.
func (x *exchange) compaction(ctx context.Context, s *step) (item string, h history, err error) {
	h, messages, err := x.t.position(ctx, s)
	if err != nil {
		return "", h, err
	}
	summary, err := inWords(ctx, messages, wordsBudget)
	if err != nil {
		return "", h, err
	}
	content, err := x.sealed(ctx, native.Token{API: wire.Responses, Kind: "compaction", Thread: h.Log, At: h.At, Last: string(h.Last), Summary: summary})
	if err != nil {
		return "", h, err
	}
	if system := instructions(s.request); len(system) > 0 {
		// A client may drop what stands before the item, its instructions as well.
		err = x.t.links.save(ctx, itemID(content), &link{Made: x.start.UnixNano(), history: h, System: system})
	}
	return native.CompactionItem(itemID(content), content), h, err
}

// itemID is the id of the item with a token.
func itemID(content string) string { return "cmp_" + digest(content) }

// instructions are the system and developer messages at the beginning of a
// request's input.
func instructions(p *prompt.Prompt) []json.RawMessage {
	var list []json.RawMessage
	for _, s := range p.System {
		if s.Role != "instructions" && s.API == wire.Responses {
			list = append(list, json.RawMessage(s.Raw))
		}
	}
	return list
}

// withoutTokens are items with words in the place of our own compactions.
func withoutTokens(items []string) []string {
	var list []string
	for _, item := range items {
		if content, ok := native.Compaction(item); ok && native.Ours(content) {
			token, _ := native.Open(nil, wire.Responses, content)
			item = recap(token.Summary)
		}
		list = append(list, item)
	}
	return list
}

// position is where the request of a step ends in its log.
func (t *Transport) position(ctx context.Context, s *step) (history, []thread.Message, error) {
	log, err := t.log.Load(ctx, s.id)
	if err != nil {
		return history{}, nil, err
	}
	last := s.ids[len(s.ids)-1]
	at, found := log.Index(last)
	if !found {
		if at = log.Len() - 1; at < 0 {
			return history{}, nil, errMoved
		}
		last = log.At(at).ID
	}
	return history{s.id, at + 1, last}, log.Messages()[:at+1], nil
}

// look reads the request, wherever its conversation comes from.
func (x *exchange) look(ctx context.Context) (*prompt.Prompt, string, error) {
	if x.asked != nil && x.asked.rebuilt != nil {
		p, err := x.readOn(ctx)
		return p, "", err
	}
	p, reason := x.read()
	return p, reason, nil
}

// compacted is the answer to a request for a compaction.
func (x *exchange) compacted(item string) *http.Response {
	x.t.compactions.Add(1)
	a := x.asked
	answer := native.ResponsesAnswer{ID: x.responseID(item), Created: x.start.Unix(), Items: []string{item}}
	switch {
	case x.endpoint.task == compaction:
		answer.Items = append(x.retained(), item)
		return answering(x.request, http.StatusOK, jsonKind, answer.Compacted())
	case a.Stream:
		return answering(x.request, http.StatusOK, streamKind, answer.Events(a.Responses))
	}
	return answering(x.request, http.StatusOK, jsonKind, answer.Whole(a.Responses))
}

// responseID is the id of a response that was made here.
func (x *exchange) responseID(item string) string { return "resp_" + digest(item, x.start.String()) }

// unknownResponse is the refusal on which clients send their history themselves.
func unknownResponse(id string) *native.ResponsesRefusal {
	return &native.ResponsesRefusal{Param: "previous_response_id", Code: "previous_response_not_found", Message: "Previous response with id '" + id + "' not found."}
}

// retained are the user's messages of the whole conversation, as the answer to
// /responses/compact repeats them.
func (x *exchange) retained() []string {
	if x.known == nil {
		return native.Retained(x.asked.items)
	}
	var items []string
	for i := range x.known.prompt.Messages {
		m := &x.known.prompt.Messages[i]
		switch {
		case m.Role != thread.User:
		case m.Frame != nil && m.Frame.API == wire.Responses && strings.HasPrefix(m.Frame.Raw, "{"):
			items = append(items, m.Frame.Raw)
		case m.Text() != "":
			items = append(items, `{"role":"user","content":`+rawjson.Quote(m.Text())+`}`)
		}
	}
	return native.Retained(items)
}

// compactInWords makes a compaction that needs no log: it holds a summary of the
// request.
func (x *exchange) compactInWords(ctx context.Context) (*http.Response, error) {
	a := x.asked
	items := a.items
	if a.rebuilt != nil && a.rebuilt.fallback != nil {
		items = a.rebuilt.fallback
	}
	p, err := x.endpoint.dialect.Decode([]byte(a.Body(items)))
	if err != nil {
		return nil, err
	}
	for i, id := range chainIDs(p.Messages) {
		p.Messages[i].ID = id
	}
	summary, err := inWords(ctx, p.Messages, 4*wordsBudget)
	if err != nil {
		return nil, err
	}
	content, err := x.sealed(ctx, native.Token{API: wire.Responses, Kind: "compaction", Summary: summary})
	if err != nil {
		return nil, err
	}
	return x.compacted(native.CompactionItem(itemID(content), content)), nil
}

// inWords is a summary of messages, for whoever has nothing else of them. No model
// is asked for it.
func inWords(ctx context.Context, messages []thread.Message, budget int) (string, error) {
	s, err := (&summarize.Extractive{}).Summarize(ctx, summarize.Input{Messages: messages, Budget: budget})
	if errors.Is(err, summarize.ErrBudget) {
		return "", nil
	}
	return s.Render(), err
}

// wordsBudget is what the readable summary in a compaction may take beside its
// log, in tokens of four bytes. Clients count the item by its length.
const wordsBudget = 1_500
