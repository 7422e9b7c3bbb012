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
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// compactNow makes the compaction that the client asks for.
func (n nativeResponses) compactNow(ctx context.Context, a *asked) (*http.Response, error) {
	r, err := n.reassembled(ctx, a.rebuilt)
	if err != nil {
		return nil, err
	}
	if len(r.IDs) == 0 {
		return refused(n.request, &native.ResponsesRefusal{Param: "input", Message: "there is nothing to compact: the input holds no message"}), nil
	}
	s, _, err := n.exchange.begin(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.prepared.Compacted == nil {
		ask := s.prepared.Step
		ask.Budget = s.prepared.Tokens
		_, err = s.session.Compact(ctx, ask, "")
		if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, palimpsest.ErrOverBudget) {
			return nil, err
		}
	}
	item, h, err := n.compaction(ctx, s.id, r)
	if err != nil {
		return nil, err
	}
	if n.endpoint.task == generate && a.Stored {
		k := &response{Made: n.start.UnixNano(), history: h, System: instructions(r.Prompt), Output: raws([]string{item}), Part: true}
		if err := n.t.responses.save(ctx, n.responseID(item), k); err != nil {
			n.fault("link", err, s)
		}
	}
	return n.compacted(a, r.Prompt.Messages, item), nil
}

// compaction is the item that stands for everything that a log holds up to the end of
// a request.
func (n nativeResponses) compaction(ctx context.Context, log string, r *reading) (item string, h history, err error) {
	h, messages, err := n.t.position(ctx, log, r)
	if err != nil {
		return "", h, err
	}
	summary, err := inWords(ctx, messages, wordsBudget)
	if err != nil {
		return "", h, err
	}
	content, err := n.sealed(ctx, native.Token{API: wire.Responses, Kind: "compaction", Thread: h.Log, At: h.At, Last: string(h.Last), Summary: summary})
	if err != nil {
		return "", h, err
	}
	if system := instructions(r.Prompt); len(system) > 0 {
		// A client may drop what stands before the item, its instructions as well.
		if err := n.t.responses.save(ctx, itemID(content), &response{Made: n.start.UnixNano(), history: h, System: system}); err != nil {
			n.fault("link", err, &step{id: log})
		}
	}
	return native.CompactionItem(itemID(content), content), h, nil
}

// itemID is the id of the item with a token.
func itemID(content string) string { return "cmp_" + identify.Digest(content) }

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

// position is where a request ends in its log.
func (t *Transport) position(ctx context.Context, id string, r *reading) (history, []thread.Message, error) {
	log, err := t.log.Load(ctx, id)
	if err != nil {
		return history{}, nil, err
	}
	last := r.IDs[len(r.IDs)-1]
	at, found := log.Index(last)
	if !found {
		if at = log.Len() - 1; at < 0 {
			return history{}, nil, errMoved
		}
		last = uncopied.At(log, at).ID
	}
	return history{id, at + 1, last}, uncopied.Messages(log)[:at+1], nil
}

// compacted is the answer to a request for a compaction.
func (n nativeResponses) compacted(a *asked, messages []thread.Message, item string) *http.Response {
	n.t.compactions.Add(1)
	answer := native.ResponsesAnswer{ID: n.responseID(item), Created: n.start.Unix(), Items: []string{item}}
	switch {
	case n.endpoint.task == compaction:
		answer.Items = append(retained(a, messages), item)
		return answering(n.request, http.StatusOK, jsonKind, answer.Compacted())
	case a.Stream:
		return answering(n.request, http.StatusOK, streamKind, answer.Events(a.Responses))
	}
	return answering(n.request, http.StatusOK, jsonKind, answer.Whole(a.Responses))
}

// responseID is the id of a response that was made here.
func (n nativeResponses) responseID(item string) string {
	return "resp_" + identify.Digest(item, n.start.String())
}

// retained are the user's messages of the whole conversation, as the answer to
// /responses/compact repeats them; nil messages are those of the request.
func retained(a *asked, messages []thread.Message) []string {
	if messages == nil {
		return native.Retained(a.items)
	}
	var items []string
	for i := range messages {
		m := &messages[i]
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
func (n nativeResponses) compactInWords(ctx context.Context, a *asked) (*http.Response, error) {
	items := a.items
	if a.rebuilt != nil && a.rebuilt.fallback != nil {
		items = a.rebuilt.fallback
	}
	p, err := identify.Decode(n.endpoint.dialect, []byte(a.Body(items)), ctx.Err)
	if err != nil {
		return nil, err
	}
	ids, err := identify.Chain(nil, p.Messages, ctx.Err)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		p.Messages[i].ID = id
	}
	summary, err := inWords(ctx, p.Messages, 4*wordsBudget)
	if err != nil {
		return nil, err
	}
	content, err := n.sealed(ctx, native.Token{API: wire.Responses, Kind: "compaction", Summary: summary})
	if err != nil {
		return nil, err
	}
	return n.compacted(a, nil, native.CompactionItem(itemID(content), content)), nil
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
