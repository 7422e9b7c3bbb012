package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// messagesReader reads requests of the Messages API with compactions of ours, and those of message
// threads: thread says {"type":"create"}, and later {"type":"continue","previous_message_id":ID} with
// only the new messages, without system and tools. The official SDKs run tools over them.
// https://docs.anthropic.com/en/api/messages (thread)
type messagesReader struct {
	*histories
	x *received
}

func (n messagesReader) read(ctx context.Context) (reading, error) {
	m, err := native.ReadMessages(n.x.plainBody)
	if err != nil {
		return reading{}, nil // the provider says it better
	}
	previous, held := m.Thread()
	ours := strings.Contains(n.x.plainBody, native.Prefix)
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
	m, err := native.ReadMessages(n.x.plainBody)
	if err != nil || m.Expand(nil, false) != nil || !m.Changed() {
		return ""
	}
	return m.Body()
}

// watchMessage calls save with an answer of the Messages API, before the client gets the end
// of it.
func (hs *histories) watchMessage(x *received, res *http.Response, save func(providerAnswer)) {
	saveRead := func(a wire.Answer, err error) {
		if err == nil && a.Message.Frame != nil {
			save(providerAnswer{a.ID, []string{a.Message.Frame.Raw()}})
		}
	}
	stream, broken := x.endpoint.dialect.NewStream(), false
	httpbody.RewriteAnswer(res, hs.streamFault(x), func(body string) string {
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
