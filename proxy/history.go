package proxy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/failsafe"
	"github.com/palimpsest-ai/palimpsest/internal/lru"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// rewrite is the request with a body of ours in place of the client's.
func (co *core) rewrite(x received, body string) received {
	api := x.endpoint.dialect.API()
	x.plain = co.requests.Similar(api, body)
	x.body, x.work, x.rewritten = x.plain.Body, workBytes(api, &x.plain), true
	h := x.request.Header.Clone()
	h.Del("Content-Encoding")
	own := *x.request
	own.Header = h
	x.request = &own
	return x
}

// histories are those that requests do not hold, because the provider does, or because a compaction
// that was made here stands for them.
type histories struct {
	*core
	conversations *conversations
	responses     responseLog
	providerIDs   *lru.Cache[string, string] // the provider's ids of responses, by the client's
	// lostConversations are conversations of which something could not be stored, so that the
	// documents are wrong about them.
	lostConversations *lru.Cache[string, bool]
	tokenSecret       secret
}

// readHistory is the request with its history. With a refusal the provider need not be asked.
func (hs *histories) readHistory(x *received) (*received, *native.Refusal) {
	next := *x
	reader := hs.reader(&next)
	if reader == nil {
		return &next, nil
	}
	ctx := x.request.Context()
	found, err := failsafe.Within(ctx, hs.options.Deadline, reader.read)
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return x, refusal
	}
	if err != nil {
		hs.emitFault(x, "native", err, nil)
		// The request would be refused without this, however short the deadline is.
		found.held = nil
		found.body, err = failsafe.Within(ctx, max(hs.options.Deadline, defaultDeadline), func(context.Context) (string, error) { return reader.fallback(), nil })
		if err != nil {
			hs.emitFault(x, "native", err, nil)
		}
	}
	next.held = found.held
	if found.body != "" {
		next = hs.rewrite(next, found.body)
	}
	return &next, nil
}

// reader returns the one for a request; nil if a look at the bytes shows that it has its history. Bytes
// that the step before had too are not searched again, nor will those that have no mark.
func (hs *histories) reader(x *received) historyReader {
	api := x.endpoint.dialect.API()
	if api != wire.Anthropic && api != wire.Responses || x.decompressErr != nil {
		return nil
	}
	body := x.plain.Unsearched(longestMark)
	ours := strings.Contains(body, native.Prefix)
	held := api == wire.Anthropic && strings.Contains(body, threadMark) ||
		api == wire.Responses && (strings.Contains(body, responseMark) || strings.Contains(body, conversationEnd) && strings.Contains(body, conversationMark))
	x.plain.Unmarked = !ours && !held
	switch {
	case api == wire.Responses && (ours || held):
		return responsesReader{hs, x}
	case ours || held && gjson.Get(x.plain.String(), "thread").IsObject():
		return messagesReader{hs, x}
	}
	return nil
}

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
	r, err := native.ParseResponses(n.x.plain.String())
	if err != nil {
		if refusal, ok := errors.AsType[*native.Refusal](err); ok && strings.Contains(n.x.plain.String(), native.Prefix) {
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
		h.previous, h.newMessages, h.addedBefore = c.last.Previous, slices.Concat(converted[string](c.last.Input), a.Items), len(c.last.Input)
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
		foreign := slices.DeleteFunc(slices.Clone(a.items), func(item string) bool {
			content, ok := native.CompactionContent(item)
			return ok && native.IsToken(content)
		})
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
		k, _ := n.responses.getValue(ctx, native.ItemID(content)) // else the instructions are not known
		a.items = slices.Concat(converted[string](k.System), a.items)
		r.fallback = slices.Concat(converted[string](k.System), r.fallback)
	}
	if _, err := n.conversations.loadHistory(ctx, r.loggedHistory); token.Thread == "" || errors.Is(err, errHistoryChanged) {
		r.loggedHistory, r.retained, a.items = loggedHistory{}, 0, r.fallback // the summary is all there is
	}
	return r, nil
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

// historyMembers are the members that name the history which a request continues.
var historyMembers = []string{"previous_response_id", "conversation"}

// fallback has the summaries of our compactions in their place.
func (n responsesReader) fallback() string {
	r, err := native.ParseResponses(n.x.plain.String())
	if err != nil || !strings.Contains(n.x.plain.String(), native.Prefix) {
		return ""
	}
	return r.Body(r.WithTrigger(r.WithRecaps()))
}

// messagesReader reads requests of the Messages API with compactions of ours, and those of message
// threads: thread says {"type":"create"}, and later {"type":"continue","previous_message_id":ID} with
// only the new messages, without system and tools. The official SDKs run tools over them.
// https://docs.anthropic.com/en/api/messages (thread)
type messagesReader struct {
	*histories
	x *received
}

func (n messagesReader) read(ctx context.Context) (reading, error) {
	m, err := native.ReadMessages(n.x.plain.String())
	if err != nil {
		return reading{}, nil // the provider says it better
	}
	previous, held := m.Thread()
	ours := strings.Contains(n.x.plain.String(), native.Prefix)
	switch {
	case held && ours:
		return reading{}, native.ThreadUnsupported()
	case ours:
		err = m.Expand(native.OpenerFor(wire.Anthropic, func() ([]byte, error) { return n.tokenSecret.load(ctx, &n.options) }), false)
		if err != nil || !m.Changed() {
			return reading{}, err
		}
		return reading{body: m.Body()}, nil
	case !held:
		return reading{}, nil
	}
	added, cacheTTL := m.WithoutCacheMarks()
	key := n.x.endpoint.responseKey(previous)
	h := &heldHistory{kind: heldThread, name: key, previous: key, stored: true, newMessages: added, cacheTTL: cacheTTL, threadMembers: m.ThreadMembers()}
	c := &heldChain{} // of a thread that begins
	if previous != "" {
		if c, err = n.responses.resolve(ctx, key); c == nil || err != nil {
			return reading{held: h}, err
		}
		h.threadMembers = c.threadMembers
	}
	h.known, h.incomplete = true, c.incomplete
	h.rebuilt = &rebuiltRequest{
		loggedHistory: c.loggedHistory, body: m.WithHistory(c.threadMembers, slices.Concat(c.items, added)),
		mustReplaceBody: c.incomplete || n.x.endpoint.task == count, // no count knows threads
	}
	return reading{held: h}, nil
}

// fallback has the texts of our compactions in their place.
func (n messagesReader) fallback() string {
	m, err := native.ReadMessages(n.x.plain.String())
	if err != nil || m.Expand(nil, false) != nil || !m.Changed() {
		return ""
	}
	return m.Body()
}

// historyReader reads requests that do not hold their whole history: the provider holds it, or a
// compaction that was made here stands for it. Each API that has such things has its own.
type historyReader interface {
	// read finds the history. A *native.Refusal is the answer; any other error is a fault of ours.
	read(ctx context.Context) (reading, error)
	// fallback is the body that is sent if read fails: without compactions of ours. Empty is the
	// client's own.
	fallback() string
}

// reading is what was read of such a request. The zero value leaves it as it is.
type reading struct {
	// held is the history; nil if the request has its own.
	held *heldHistory
	// body goes to the provider in place of the client's; empty keeps that.
	body string
	// items are the history as it was written, in the Responses API.
	items []string
}

// The marks of requests that do not hold their history. A search is fast for a text that begins
// with a rare letter.
const (
	threadMark       = `"thread"`
	responseMark     = `_response_id"`
	conversationMark = `"conversation"`
	conversationEnd  = `versation"`
	longestMark      = 32 // bytes; native.Prefix is shorter
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
