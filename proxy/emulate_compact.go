package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/summarize"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// compactNow answers a request for a compaction.
func (n nativeResponses) compactNow(ctx context.Context, a *responsesRequest) (*http.Response, error) {
	r, err := n.parseRebuilt(ctx, a.held.rebuilt)
	if err != nil {
		return nil, err
	}
	if len(r.IDs) == 0 {
		return refusalAnswer(n.request, &native.Refusal{API: wire.Responses, Param: "input", Message: "there is nothing to compact: the input holds no message"}), nil
	}
	s, _, err := n.beginStep(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.prepared.Compacted == nil {
		input := s.prepared.Step
		input.Budget, input.OwnTarget = s.prepared.Tokens, true
		_, err = s.session.Compact(ctx, input, "")
		if err != nil && !errors.Is(err, policy.ErrNothing) && !errors.Is(err, palimpsest.ErrOverBudget) {
			return nil, err
		}
	}
	item, h, err := n.compactionItem(ctx, s.logID, r)
	if err != nil {
		return nil, err
	}
	if n.endpoint.task == generate && a.Stored {
		k := &storedResponse{Made: n.start.UnixNano(), loggedHistory: h, System: instructions(r.Prompt), Output: rawMessages([]string{item}), Incomplete: true}
		if err := n.t.responses.save(ctx, n.responseID(item), k); err != nil {
			n.emitFault("link", err, s)
		}
	}
	return n.compactedAnswer(a, r.Prompt.Messages, item), nil
}

// compactionItem is the item that stands for a log up to the end of a request.
func (n nativeResponses) compactionItem(ctx context.Context, log string, r *parsedRequest) (item string, h loggedHistory, err error) {
	h, messages, err := n.t.logPosition(ctx, log, r)
	if err != nil {
		return "", h, err
	}
	summary, err := summaryText(ctx, messages, summaryBudget)
	if err != nil {
		return "", h, err
	}
	content, err := n.t.tokenSecret.seal(ctx, &n.t.options, native.Token{API: wire.Responses, Kind: "compaction", Thread: h.Log, At: h.At, Last: string(h.Last), Summary: summary})
	if err != nil {
		return "", h, err
	}
	if system := instructions(r.Prompt); len(system) > 0 {
		// A client may drop everything before the item, its instructions too.
		if err := n.t.responses.save(ctx, itemID(content), &storedResponse{Made: n.start.UnixNano(), loggedHistory: h, System: system}); err != nil {
			n.emitFault("link", err, &step{logID: log})
		}
	}
	return native.CompactionItem(itemID(content), content), h, nil
}

// itemID is the id of the item that holds a token.
func itemID(content string) string { return "cmp_" + identify.Digest(content) }

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

// logPosition is where a request ends in its log, and the messages up to there.
func (t *Transport) logPosition(ctx context.Context, id string, r *parsedRequest) (loggedHistory, []thread.Message, error) {
	log, err := t.log.Load(ctx, id)
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

// compactedAnswer is the answer to a request for a compaction.
func (n nativeResponses) compactedAnswer(a *responsesRequest, messages []thread.Message, item string) *http.Response {
	n.t.compactions.Add(1)
	answer := native.ResponsesAnswer{ID: n.responseID(item), Created: n.start.Unix(), Items: []string{item}}
	switch {
	case n.endpoint.task == compaction:
		answer.Items = append(retainedMessages(a, messages), item)
		return httpbody.NewAnswer(n.request, http.StatusOK, httpbody.JSON, answer.CompactedBody())
	case a.Stream:
		return httpbody.NewAnswer(n.request, http.StatusOK, httpbody.EventStream, answer.Events(a.Responses))
	}
	return httpbody.NewAnswer(n.request, http.StatusOK, httpbody.JSON, answer.Response(a.Responses))
}

// responseID is the id of a response of ours.
func (n nativeResponses) responseID(item string) string {
	return "resp_" + identify.Digest(item, n.start.String())
}

// retainedMessages are the user's messages of the conversation, as the answer to
// /responses/compact repeats them. Without messages they are those of the request.
func retainedMessages(a *responsesRequest, messages []thread.Message) []string {
	if messages == nil {
		return native.RetainedMessages(a.items)
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
	return native.RetainedMessages(items)
}

// compactWithoutLog answers with a compaction that needs no log: it holds a summary of the
// request.
func (n nativeResponses) compactWithoutLog(ctx context.Context, a *responsesRequest) (*http.Response, error) {
	items := a.items
	if r := a.held.rebuilt; r != nil && r.fallback != nil {
		items = r.fallback
	}
	p, err := identify.Decode(n.endpoint.dialect, a.Body(items), ctx.Err)
	if err != nil {
		return nil, err
	}
	ids, err := identify.ChainIDs(nil, p.Messages, ctx.Err)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		p.Messages[i].ID = id
	}
	summary, err := summaryText(ctx, p.Messages, 4*summaryBudget)
	if err != nil {
		return nil, err
	}
	content, err := n.t.tokenSecret.seal(ctx, &n.t.options, native.Token{API: wire.Responses, Kind: "compaction", Summary: summary})
	if err != nil {
		return nil, err
	}
	return n.compactedAnswer(a, nil, native.CompactionItem(itemID(content), content)), nil
}

// summaryText summarizes messages without asking a model; empty if the budget is too small.
func summaryText(ctx context.Context, messages []thread.Message, budget int) (string, error) {
	s, err := (&summarize.Extractive{}).Summarize(ctx, summarize.Input{Messages: messages, Budget: budget})
	if errors.Is(err, summarize.ErrBudget) {
		return "", nil
	}
	return s.Render(), err
}

// summaryBudget bounds the summary in a compaction that has a log, in tokens of four bytes.
// Clients count the item by its length.
const summaryBudget = 1_500
