package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/rawjson"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// nativeResponses emulates the compaction of the Responses API, and continues histories that
// the provider holds.
type nativeResponses struct{ *exchange }

// responsesRequest is a request of the Responses API while its history is put together.
type responsesRequest struct {
	*native.Responses
	held *heldHistory
	// items are the conversation as far as the outgoing body holds it.
	items []string
	// body goes to the provider in place of the client's; empty keeps that.
	body string
}

func (n nativeResponses) apply(ctx context.Context) (emulation, error) {
	r, err := native.ParseResponses(n.plainBody)
	if err != nil {
		if n.emulated() || strings.Contains(n.plainBody, native.Prefix) {
			if refusal, ok := errors.AsType[*native.Refusal](err); ok {
				return emulation{}, refusal
			}
		}
		return emulation{}, nil // the provider says what is wrong
	}
	a := &responsesRequest{Responses: r, items: r.Items, held: heldByResponses(r)}
	if err := n.resolveHistory(ctx, a); err != nil {
		return emulation{}, err
	}
	switch {
	case !n.asksCompaction(r):
		return emulation{compacts: n.emulated() && r.Managed, threshold: r.Threshold, held: a.held, body: a.body}, nil
	case r.Previous != "" && !a.held.known:
		return emulation{answer: responseNotFound(n.request, r.Previous)}, nil
	case r.Conversation:
		return emulation{}, &native.Refusal{API: wire.Responses, Param: "conversation", Message: "a conversation that the provider holds cannot be compacted here: send its items as the input"}
	}
	answer, err := n.compactNow(ctx, a)
	if err != nil && ctx.Err() == nil {
		n.emitFault("compaction", err, nil)
		answer, err = n.compactWithoutLog(ctx, a)
	}
	return emulation{answer: answer}, err
}

func (n nativeResponses) fallback() emulation {
	r, err := native.ParseResponses(n.plainBody)
	if err != nil {
		return emulation{}
	}
	a := &responsesRequest{Responses: r, items: withRecapItems(r.Items), held: heldByResponses(r)}
	if n.asksCompaction(r) {
		if answer, err := n.compactWithoutLog(n.request.Context(), a); err == nil {
			return emulation{answer: answer}
		}
	}
	switch {
	case n.emulated():
		return emulation{body: r.Body(a.items, "context_management")}
	case !strings.Contains(n.plainBody, native.Prefix):
		return emulation{}
	}
	return emulation{body: r.Body(n.withTrigger(r, a.items))}
}

// withTrigger returns items with the trigger that the provider is to see behind them.
func (n nativeResponses) withTrigger(r *native.Responses, items []string) []string {
	if n.emulated() {
		return items
	}
	return r.WithTrigger(items)
}

// asksCompaction reports whether a request asks for nothing but a compaction, which is made
// here.
func (n nativeResponses) asksCompaction(r *native.Responses) bool {
	return n.emulated() && (n.endpoint.task == compaction || n.endpoint.task == generate && r.Trigger != "")
}

// resolveHistory makes of a request one that any provider can answer. The error is a refusal.
func (n nativeResponses) resolveHistory(ctx context.Context, a *responsesRequest) error {
	h := a.held
	logged := n.resolveHeld(ctx, a)
	rebuilt, err := n.expandCompaction(ctx, a, logged)
	if err != nil {
		return err
	}
	var gone []string
	if n.emulated() && a.Managed {
		gone = append(gone, "context_management")
		a.body = a.Body(a.Items, gone...)
	}
	asksCompaction := n.asksCompaction(a.Responses)
	if rebuilt == nil && (h.known || asksCompaction) {
		rebuilt = &rebuiltRequest{loggedHistory: logged, mustReplaceBody: h.incomplete || asksCompaction}
	}
	if rebuilt == nil {
		return nil
	}
	rebuilt.body = a.Body(n.withTrigger(a.Responses, a.items), append(gone, historyMembers...)...)
	if rebuilt.fallback != nil {
		if h.known {
			gone = append(gone, historyMembers...)
		}
		a.body = a.Body(n.withTrigger(a.Responses, rebuilt.fallback), gone...)
	}
	h.rebuilt = rebuilt
	return nil
}

// historyMembers are the members that name the history which a request continues.
var historyMembers = []string{"previous_response_id", "conversation"}

// resolveHeld puts the history that the provider holds before the items of the request, but for
// the part that is in a log, which it returns.
func (n nativeResponses) resolveHeld(ctx context.Context, a *responsesRequest) loggedHistory {
	h := a.held
	if lost, _ := n.t.lostConversations.Get(h.conversation()); h.name == "" || lost {
		return loggedHistory{}
	}
	c, err := n.t.responses.resolve(ctx, h.name)
	if err != nil {
		n.emitFault("link", err, nil)
	}
	if c == nil {
		return loggedHistory{}
	}
	h.known, h.incomplete = true, c.incomplete
	a.items = slices.Concat(c.system, c.items, a.Items)
	if h.kind == heldConversation {
		h.previous, h.newMessages, h.addedBefore = c.last.Previous, slices.Concat(rawStrings(c.last.Input), a.Items), len(c.last.Input)
	}
	return c.loggedHistory
}

// expandCompaction puts the history that our newest compaction stands for in place of the items
// before it, except for what the client may have added there. It returns nil if there is
// none, or a newer one of the provider's.
func (n nativeResponses) expandCompaction(ctx context.Context, a *responsesRequest, logged loggedHistory) (*rebuiltRequest, error) {
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
		// Our compactions before the provider's have to go.
		foreign := slices.DeleteFunc(slices.Clone(a.items), isOurCompaction)
		if len(foreign) == len(a.items) {
			return nil, nil
		}
		a.items = foreign
		return &rebuiltRequest{loggedHistory: logged, mustReplaceBody: true, fallback: foreign}, nil
	}
	token, err := n.openToken(ctx, content)
	if err != nil {
		return nil, &native.Refusal{API: wire.Responses, Code: "invalid_encrypted_content", Message: "The encrypted content " + clipToken(content) + " could not be verified."}
	}
	var kept []string
	for _, item := range a.items[:newest] {
		switch gjson.Get(item, "role").Str {
		case "user", "system", "developer":
			kept = append(kept, item)
		}
	}
	after := a.items[newest+1:]
	instructions := native.CountInstructions(kept)
	r := &rebuiltRequest{loggedHistory: loggedHistory{token.Thread, token.At, thread.ID(token.Last)}, mustReplaceBody: true, retained: len(kept) - instructions}
	r.fallback = slices.Concat(kept, []string{recapItem(token.Summary)}, after)
	a.items = slices.Concat(kept, after)
	if instructions == 0 {
		if k, err := n.t.responses.get(ctx, itemID(content)); err == nil && k.value != nil {
			a.items = slices.Concat(rawStrings(k.value.System), a.items)
			r.fallback = slices.Concat(rawStrings(k.value.System), r.fallback)
		}
	}
	if _, err := n.t.loadHistory(ctx, r.loggedHistory); token.Thread == "" || errors.Is(err, errHistoryChanged) {
		r.loggedHistory, r.retained, a.items = loggedHistory{}, 0, r.fallback // the summary is all there is
	}
	return r, nil
}

// isOurCompaction reports whether an item is a compaction that was made here.
func isOurCompaction(item string) bool {
	content, ok := native.CompactionContent(item)
	return ok && native.IsToken(content)
}

// openToken verifies a compaction of ours. Without the key only its summary counts, as the
// client's own words.
func (n nativeResponses) openToken(ctx context.Context, content string) (native.Token, error) {
	key, err := n.t.tokenSecret.load(ctx, &n.t.options)
	token, forged := native.Open(key, wire.Responses, content)
	if err != nil {
		n.emitFault("secret", err, nil)
		return native.Token{Summary: token.Summary}, nil
	}
	return token, forged
}

// recapItem is a user message with the summary of a compaction.
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

// withRecapItems returns items with the summaries of our compactions in their place.
func withRecapItems(items []string) []string {
	list := slices.Clone(items)
	for i, item := range list {
		if content, ok := native.CompactionContent(item); ok && native.IsToken(content) {
			token, _ := native.Open(nil, wire.Responses, content)
			list[i] = recapItem(token.Summary)
		}
	}
	return list
}

// clientBudget is the budget, in tokens, of a request that has its provider compact from a
// threshold on; 0 if only the window bounds it. A policy compacts at nine tenths of it.
func (m emulation) clientBudget(input *palimpsest.Step) int {
	if !m.compacts || m.threshold == 0 {
		return 0
	}
	budget := m.threshold * 10 / 9
	if room := input.Window - input.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// compactionOf makes the compaction item of a step; empty if that fails.
func (n nativeResponses) compactionOf(s *step) string {
	item, err := failsafe.Within(n.request.Context(), n.t.options.Deadline, func(ctx context.Context) (string, error) {
		item, _, err := n.compactionItem(ctx, s.logID, s.parsed)
		return item, err
	})
	if err != nil {
		n.emitFault("compaction", err, s)
	}
	return item
}
