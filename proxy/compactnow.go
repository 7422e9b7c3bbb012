package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// compactNow makes the compaction that the client asks for.
func (x *exchange) compactNow(ctx context.Context) (*http.Response, error) {
	p, err := x.readOn(ctx)
	if err != nil {
		return nil, err
	}
	if len(p.Messages) == 0 {
		return refused(x.request, &native.ResponsesRefusal{Param: "input", Message: "there is nothing to compact: the input holds no message"}), nil
	}
	known := x.model(ctx, x.modelNameOf(p))
	compactor, err := x.t.compactor(known, x.offers(p))
	if err != nil {
		return nil, err
	}
	s := &step{ids: x.known.ids, request: p, ask: palimpsest.Step{
		Base: p, Profile: x.profile(known), Window: limit(known), Output: output(known, p),
	}}
	b, err := x.t.branch(ctx, x.base(p, s.ids), x.scope(p), p.Messages, s.ids)
	if err != nil {
		return nil, err
	}
	s.id, s.session, s.ask.Messages = b.id, compactor.Session(b.id), b.news
	made, err := s.session.PrepareStep(ctx, s.ask)
	if err != nil {
		return nil, err
	}
	if made.Compacted == nil {
		ask := made.Step
		ask.Budget = made.Tokens
		_, err = s.session.Compact(ctx, ask, "")
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
		if err := x.t.links.save(ctx, itemID(content), &link{Made: x.start.UnixNano(), history: h, System: system}); err != nil {
			x.fault("link", err, verdict{step: s})
		}
	}
	return native.CompactionItem(itemID(content), content), h, nil
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
		last = uncopied.At(log, at).ID
	}
	return history{s.id, at + 1, last}, uncopied.Messages(log)[:at+1], nil
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
		case m.Frame != nil && m.Frame.API() == wire.Responses && strings.HasPrefix(m.Frame.Raw(), "{"):
			items = append(items, m.Frame.Raw())
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
