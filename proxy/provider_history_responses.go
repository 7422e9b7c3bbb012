package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// responsesReader reads requests of the Responses API that continue a history which the provider
// holds, or which a compaction of ours stands for.
type responsesReader struct {
	*histories
	x *received
}

// responsesRequest is such a request while its history is put together.
type responsesRequest struct {
	*native.Responses
	held *heldHistory
	// items are the conversation as far as the outgoing body holds it.
	items []string
}

func (n responsesReader) read(ctx context.Context) (reading, error) {
	r, err := native.ParseResponses(n.x.plainBody)
	if err != nil {
		if refusal, ok := errors.AsType[*native.Refusal](err); ok && strings.Contains(n.x.plainBody, native.Prefix) {
			return reading{}, refusal
		}
		return reading{}, nil // the provider says what is wrong
	}
	a := &responsesRequest{Responses: r, items: r.Items, held: heldByResponses(r)}
	h, out := a.held, reading{held: a.held}
	logged := n.resolveHeld(ctx, a)
	if h.rebuilt, err = n.expandCompaction(ctx, a, logged); err != nil {
		return reading{}, err
	}
	if h.rebuilt == nil && h.known {
		h.rebuilt = &rebuiltRequest{loggedHistory: logged, mustReplaceBody: h.incomplete}
	}
	if h.rebuilt == nil {
		return out, nil
	}
	h.rebuilt.body, out.items = a.Body(a.WithTrigger(a.items), historyMembers...), a.items
	if h.rebuilt.fallback != nil {
		out.items = h.rebuilt.fallback
		var gone []string
		if h.known {
			gone = historyMembers
		}
		out.body = a.Body(a.WithTrigger(h.rebuilt.fallback), gone...)
	}
	return out, nil
}

// fallback has the summaries of our compactions in their place.
func (n responsesReader) fallback() string {
	r, err := native.ParseResponses(n.x.plainBody)
	if err != nil || !strings.Contains(n.x.plainBody, native.Prefix) {
		return ""
	}
	return r.Body(r.WithTrigger(r.WithRecaps()))
}

// historyMembers are the members that name the history which a request continues.
var historyMembers = []string{"previous_response_id", "conversation"}

// resolveHeld puts the history that the provider holds before the items of the request, but for
// the part that is in a log, which it returns.
func (n responsesReader) resolveHeld(ctx context.Context, a *responsesRequest) loggedHistory {
	h := a.held
	if lost, _ := n.lostConversations.Get(h.conversation()); h.name == "" || lost {
		return loggedHistory{}
	}
	c, err := n.responses.resolve(ctx, h.name)
	if err != nil {
		n.emitFault(n.x, "link", err, nil)
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
func (n responsesReader) expandCompaction(ctx context.Context, a *responsesRequest, logged loggedHistory) (*rebuiltRequest, error) {
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
	r.fallback = slices.Concat(kept, []string{native.RecapItem(token.Summary)}, after)
	a.items = slices.Concat(kept, after)
	if instructions == 0 {
		if k, err := n.responses.get(ctx, native.ItemID(content)); err == nil && k.value != nil {
			a.items = slices.Concat(rawStrings(k.value.System), a.items)
			r.fallback = slices.Concat(rawStrings(k.value.System), r.fallback)
		}
	}
	if _, err := n.conversations.loadHistory(ctx, r.loggedHistory); token.Thread == "" || errors.Is(err, errHistoryChanged) {
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
func (n responsesReader) openToken(ctx context.Context, content string) (native.Token, error) {
	key, err := n.tokenSecret.load(ctx, &n.options)
	token, forged := native.Open(key, wire.Responses, content)
	if err != nil {
		n.emitFault(n.x, "secret", err, nil)
		return native.Token{Summary: token.Summary}, nil
	}
	return token, forged
}

// clipToken shortens a token for a message about it.
func clipToken(s string) string {
	if len(s) <= 8 {
		return s
	}
	return s[:4] + "..." + s[len(s)-4:]
}
