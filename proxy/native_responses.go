package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesRequest is what a request of the Responses API asks beside a question to the
// model: a compaction in the provider's own way, or to go on with a history that
// the provider holds.
type responsesRequest struct {
	*native.Responses
	*providerState
	// items are the conversation as far as the body of what goes out holds it.
	items []string
	// emulated: the compaction that the client manages is made here.
	emulated bool
	// body goes to the provider in place of the client's; empty keeps it.
	body string
}

// nativeResponses emulates the compaction of the Responses API, and goes on with
// histories that the provider holds.
type nativeResponses struct{ *exchange }

// apply implements emulator.
func (n nativeResponses) apply(ctx context.Context, body string, emulated bool) (emulation, error) {
	refuse := func(why *native.ResponsesRefusal) (emulation, error) {
		return emulation{answer: refusalAnswer(n.request, why)}, nil
	}
	r, err := native.ParseResponses(body)
	var invalid *native.ResponsesRefusal
	switch {
	case errors.As(err, &invalid) && (emulated || strings.Contains(body, native.Prefix)):
		return refuse(invalid)
	case err != nil:
		return emulation{}, nil // the provider says what is wrong
	}
	a := &responsesRequest{Responses: r, items: r.Items, providerState: n.responseState(r)}
	if invalid = n.resolveHistory(ctx, a, emulated); invalid != nil {
		return refuse(invalid)
	}
	switch {
	case !n.asksCompaction(a, emulated):
		return emulation{responses: a, providerState: a.providerState, body: a.body}, nil
	case a.Previous != "" && !a.known:
		return emulation{answer: n.unknownResponse(a.Previous)}, nil
	case a.Conversation:
		return refuse(&native.ResponsesRefusal{Param: "conversation", Message: "a conversation that the provider holds cannot be compacted here: send its items as the input"})
	}
	answer, err := n.compactNow(ctx, a)
	if err != nil && ctx.Err() == nil {
		n.emitFault("compaction", err, nil)
		answer, err = n.compactWithoutLog(ctx, a)
	}
	return emulation{answer: answer}, err
}

// fallback implements emulator.
func (n nativeResponses) fallback(body string, emulated bool) emulation {
	r, err := native.ParseResponses(body)
	if err != nil {
		return emulation{}
	}
	a := &responsesRequest{Responses: r, items: withRecapItems(r.Items), providerState: n.responseState(r)}
	if n.asksCompaction(a, emulated) {
		if answer, err := n.compactWithoutLog(n.request.Context(), a); err == nil {
			return emulation{answer: answer}
		}
	}
	switch {
	case emulated:
		return emulation{body: a.Body(a.items, "context_management")}
	case !strings.Contains(body, native.Prefix):
		return emulation{}
	case a.Trigger:
		a.items = append(a.items, trigger)
	}
	return emulation{body: a.Body(a.items)}
}

// trigger is the item that asks for a compaction.
const trigger = `{"type":"compaction_trigger"}`

// asksCompaction reports whether a request asks for nothing but a compaction, which is
// made here.
func (n nativeResponses) asksCompaction(a *responsesRequest, emulated bool) bool {
	return emulated && (n.endpoint.task == compaction || n.endpoint.task == generate && a.Trigger)
}

// resolveHistory makes of a request one that any provider can answer.
func (n nativeResponses) resolveHistory(ctx context.Context, a *responsesRequest, emulated bool) *native.ResponsesRefusal {
	var h loggedHistory
	if gone, _ := n.t.lostConversations.Get(a.conversation); a.name != "" && !gone {
		c, err := n.t.responses.resolve(ctx, a.name)
		if err != nil {
			n.emitFault("link", err, nil) // as one that nobody knows
		}
		if c != nil {
			a.known, a.incomplete, h = true, c.incomplete, c.loggedHistory
			a.items = slices.Concat(c.system, c.items, a.Items)
			if a.conversation != "" {
				a.previous, a.newMessages, a.addedBefore = c.last.Previous, slices.Concat(rawStrings(c.last.Input), a.Items), len(c.last.Input)
			}
		}
	}
	own, invalid := n.expandCompaction(ctx, a, h)
	if invalid != nil {
		return invalid
	}
	var gone []string
	a.emulated = emulated && a.Managed
	if a.emulated {
		gone = append(gone, "context_management")
		a.body = a.Body(a.Items, gone...)
	}
	triggered := n.asksCompaction(a, emulated)
	if own == nil && (a.known || triggered) {
		own = &rebuiltRequest{loggedHistory: h, mustReplaceBody: a.incomplete || triggered}
	}
	if own == nil {
		return nil
	}
	var tail []string
	if a.Trigger && !emulated {
		tail = append(tail, trigger)
	}
	own.body = a.Body(slices.Concat(a.items, tail), append(gone, stateMembers...)...)
	if own.fallback != nil {
		if a.known {
			gone = append(gone, stateMembers...)
		}
		a.body = a.Body(slices.Concat(own.fallback, tail), gone...)
	}
	a.rebuilt = own
	return nil
}

// stateMembers are those that name what a request goes on with.
var stateMembers = []string{"previous_response_id", "conversation"}

// expandCompaction finds our own compaction among the items. The history that it stands
// for takes the place of everything before it but what the client may have added
// there. It is nil where there is none, or a newer one of the provider's.
func (n nativeResponses) expandCompaction(ctx context.Context, a *responsesRequest, h loggedHistory) (*rebuiltRequest, *native.ResponsesRefusal) {
	newest, content := -1, ""
	for i, item := range slices.Backward(a.items) {
		if c, ok := native.CompactionContent(item); ok {
			newest, content = i, c
			break
		}
	}
	if newest < 0 {
		return nil, nil
	}
	if !native.IsToken(content) {
		// What stands before the provider's may go, and what is ours must.
		foreign := slices.DeleteFunc(slices.Clone(a.items), func(item string) bool {
			content, ok := native.CompactionContent(item)
			return ok && native.IsToken(content)
		})
		if len(foreign) == len(a.items) {
			return nil, nil
		}
		a.items = foreign
		return &rebuiltRequest{loggedHistory: h, mustReplaceBody: true, fallback: foreign}, nil
	}
	token, err := n.openToken(ctx, content)
	if err != nil {
		return nil, &native.ResponsesRefusal{Code: "invalid_encrypted_content", Message: "The encrypted content " + clipToken(content) + " could not be verified."}
	}
	var kept []string
	for _, item := range a.items[:newest] {
		switch gjson.Get(item, "role").Str {
		case "user", "system", "developer":
			kept = append(kept, item)
		}
	}
	after := a.items[newest+1:]
	r := &rebuiltRequest{loggedHistory: loggedHistory{token.Thread, token.At, thread.ID(token.Last)}, mustReplaceBody: true, retained: len(kept) - native.CountInstructions(kept)}
	r.fallback = slices.Concat(kept, []string{recapItem(token.Summary)}, after)
	a.items = slices.Concat(kept, after)
	if native.CountInstructions(kept) == 0 {
		if k, err := n.t.responses.get(ctx, itemID(content)); err == nil && k.value != nil {
			a.items = slices.Concat(rawStrings(k.value.System), a.items)
			r.fallback = slices.Concat(rawStrings(k.value.System), r.fallback)
		}
	}
	if _, err := n.t.loadHistory(ctx, r.loggedHistory); token.Thread == "" || errors.Is(err, errHistoryChanged) {
		r.loggedHistory, r.retained, a.items = loggedHistory{}, 0, r.fallback // words are all there is
	}
	return r, nil
}

// openToken reads a compaction of ours. Where the key cannot be had, its summary is
// all that counts: it is the client's word then.
func (n nativeResponses) openToken(ctx context.Context, content string) (native.Token, error) {
	key, err := n.t.tokenSecret.load(ctx, &n.t.options)
	token, forged := native.Open(key, wire.Responses, content)
	if err != nil {
		n.emitFault("secret", err, nil)
		return native.Token{Summary: token.Summary}, nil
	}
	return token, forged
}

// recapItem is a user message that says in words what a compaction stands for.
func recapItem(summary string) string {
	return `{"type":"message","role":"user","content":[{"type":"input_text","text":` + rawjson.Quote("[What happened before, in short; the messages themselves are not here any more.]\n"+summary) + `}]}`
}

// clipToken shortens a token for a message about it.
func clipToken(s string) string {
	if len(s) <= 8 {
		return s
	}
	return s[:4] + "..." + s[len(s)-4:]
}

func refusalAnswer(r *http.Request, why *native.ResponsesRefusal) *http.Response {
	return newAnswer(r, http.StatusBadRequest, jsonKind, why.Body())
}

// withRecapItems returns items with words in the place of our own compactions.
func withRecapItems(items []string) []string {
	var list []string
	for _, item := range items {
		if content, ok := native.CompactionContent(item); ok && native.IsToken(content) {
			token, _ := native.Open(nil, wire.Responses, content)
			item = recapItem(token.Summary)
		}
		list = append(list, item)
	}
	return list
}

// clientBudget is what bounds a request whose compaction the client manages, in tokens;
// 0 where nothing but the window does. A policy compacts at nine tenths of it.
func (m emulation) clientBudget(ask *palimpsest.Step) int {
	if m.responses == nil || !m.responses.emulated || m.responses.Threshold == 0 {
		return 0
	}
	budget := m.responses.Threshold * 10 / 9
	if room := ask.Window - ask.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// compactionOf makes the compaction item of a step; empty where something failed.
func (n nativeResponses) compactionOf(s *step) string {
	item, err := runWithin(n.request.Context(), n.t.options.Deadline, func(ctx context.Context) (string, error) {
		item, _, err := n.compactionItem(ctx, s.logID, s.parsed)
		return item, err
	})
	if err != nil {
		n.emitFault("compaction", err, s)
	}
	return item
}
