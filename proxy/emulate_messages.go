package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// nativeMessages emulates the context management and the compaction of the
// Anthropic Messages API.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
type nativeMessages struct{ *exchange }

func (n nativeMessages) apply(ctx context.Context) (emulation, error) {
	emulated := n.emulated()
	if emulated && !mayAskCompaction(n.plainBody) {
		return n.withoutBetaHeader(), nil
	}
	m, err := native.ReadMessages(n.plainBody)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	if emulated {
		err = m.ReadCompaction()
	}
	if err == nil {
		err = m.Expand(n.t.tokenSecret.opener(ctx, &n.t.options, wire.Anthropic), emulated)
	}
	switch {
	case err != nil:
		return emulation{}, err
	case emulated && (m.Managed || m.OnDemand):
		return n.applyEdits(ctx, m)
	case m.Changed():
		return n.forUpstream(m), nil
	case emulated:
		return n.withoutBetaHeader(), nil
	}
	return emulation{}, nil
}

// withoutBetaHeader takes the emulated betas off a request that asks for nothing.
func (n nativeMessages) withoutBetaHeader() emulation {
	if !namesBetas(n.request.Header, emulatedBetas...) {
		return emulation{}
	}
	out := emulation{header: withoutBetas(n.request.Header, emulatedBetas...)}
	if n.endpoint.task == generate && namesBetas(n.request.Header, native.BetaCompact) {
		out.reshape = func(res *http.Response) { n.addToAnswer(res, &native.Addition{Iterations: true}) }
	}
	return out
}

func (n nativeMessages) fallback() emulation {
	m, err := native.ReadMessages(n.plainBody)
	if err != nil {
		return emulation{}
	}
	if n.emulated() && m.ReadCompaction() == nil && m.OnDemand && n.endpoint.task == generate {
		return emulation{answer: httpbody.NewAnswer(n.request, 529, httpbody.JSON, native.Unavailable())}
	}
	if err := m.Expand(nil, n.emulated()); err != nil {
		return emulation{}
	}
	return n.forUpstream(m)
}

// forUpstream is the request as it is now, without what the upstream does not know.
func (n nativeMessages) forUpstream(m *native.Messages) emulation {
	out := emulation{body: m.Body()}
	if n.emulated() {
		out.header = withoutBetas(n.request.Header, emulatedBetas...)
	}
	return out
}

// emulatedBetas are the betas that are done here. Under native.BetaCompact every answer tells
// its usage by iterations.
var emulatedBetas = []string{native.BetaEdits, native.BetaCompact, native.BetaOnDemand}

// betaHeader is where a client names betas, in one list or several.
const betaHeader = "Anthropic-Beta"

// namesBetas reports whether a client names one of some betas. Clients do so with every
// request, even one that asks for nothing.
func namesBetas(h http.Header, betas ...string) bool {
	named := strings.Join(h.Values(betaHeader), ",")
	return slices.ContainsFunc(betas, func(beta string) bool { return strings.Contains(named, beta) })
}

// withoutBetas returns headers that do not name some betas.
func withoutBetas(h http.Header, betas ...string) http.Header {
	return httpbody.WithoutListed(h, betaHeader, func(beta string) bool { return slices.Contains(betas, beta) })
}

// applyEdits does what the request asks for.
func (n nativeMessages) applyEdits(ctx context.Context, m *native.Messages) (emulation, error) {
	switch {
	case m.OnDemand && n.endpoint.task == count:
		return n.forUpstream(m), nil // the count is of the conversation as it was sent
	case m.OnDemand:
		return n.answerWithSummary(ctx, m)
	}
	memo, err := n.t.memo(m.Model)
	if err != nil {
		return emulation{}, err
	}
	tokensOf := memo.Counter().Text
	tokens := 0
	if slices.ContainsFunc(m.Edits, func(e native.Edit) bool { return e.Trigger > 0 && !e.ByUses && m.Size() > e.Trigger }) {
		p, err := decodedPrompt(ctx, m.Body())
		if err != nil {
			return n.forUpstream(m), nil // the provider says what is wrong with it
		}
		tokens = memo.Prompt(p)
	}
	add := &native.Addition{Managed: true, Iterations: namesBetas(n.request.Header, native.BetaCompact)}
	paused := false
	for _, e := range m.Edits {
		var done native.Applied
		ok := false
		switch e.Type {
		case native.ClearThinking:
			done, ok = m.ClearThinking(e, tokensOf)
		case native.ClearTools:
			done, ok = m.ClearToolUses(e, tokens, tokensOf)
		case native.Compact:
			add.Iterations = true
			if n.endpoint.task == generate && tokens >= e.Trigger && add.Block == "" {
				if err := n.compactConversation(ctx, m, e, add); err != nil {
					return emulation{}, err
				}
				paused = e.Pause && add.Block != ""
			}
		}
		if ok {
			add.Applied = append(add.Applied, done)
			tokens -= done.Tokens
		}
	}
	if paused {
		return emulation{answer: n.compactionAnswer(m, add)}, nil
	}
	if m.Edited() && n.t.model(m.Model).BindsThinking {
		m.ClearBoundThinking()
	}
	out := n.forUpstream(m)
	out.edited = m.Edited()
	out.reshape = func(res *http.Response) { n.addToAnswer(res, add) }
	return out, nil
}

// addToAnswer adds to an answer what the API says of compaction.
func (n nativeMessages) addToAnswer(res *http.Response, add *native.Addition) {
	whole := add.AddToAnswer
	if n.endpoint.task == count {
		whole = add.AddToCount
	}
	httpbody.RewriteAnswer(res, n.emitStreamFault, whole, func(e sse.Event) (out []byte) {
		for _, data := range add.AddToEvent(e.Data) {
			if data == e.Data {
				out = append(out, e.Raw...)
			} else {
				out = append(out, sse.Event{Name: gjson.Get(data, "type").Str}.WithData(data)...)
			}
		}
		return out
	})
}

// compactConversation puts a summary in place of the whole conversation, unless that saves less than half
// of it.
func (n nativeMessages) compactConversation(ctx context.Context, m *native.Messages, e native.Edit, add *native.Addition) error {
	made, err := n.makeReplacement(ctx, m, e.Instructions)
	if err != nil || 2*made.tokens > made.before {
		return err
	}
	if e.Pause {
		if err := m.Validate(); err != nil {
			return err // no upstream will look at the request
		}
	}
	token, err := n.signReplacement(ctx, m, native.BetaCompact, made)
	if err != nil {
		return err
	}
	add.Block = native.ThresholdBlock(made.text, token)
	m.ReplaceMessages(made.text)
	return nil
}

// answerWithSummary answers a request for a summary alone.
func (n nativeMessages) answerWithSummary(ctx context.Context, m *native.Messages) (emulation, error) {
	if m.NothingToSummarize() {
		return emulation{}, &native.Refusal{API: wire.Anthropic, Code: "compaction_nothing_to_summarize", Message: "messages: there is nothing to summarize"}
	}
	if err := m.Validate(); err != nil {
		return emulation{}, err
	}
	made, err := n.makeReplacement(ctx, m, m.Instructions)
	if err != nil {
		return emulation{}, err
	}
	token, err := n.signReplacement(ctx, m, native.BetaOnDemand, made)
	if err != nil {
		return emulation{}, err
	}
	return emulation{answer: n.compactionAnswer(m, &native.Addition{Block: native.SignedBlock(made.text, token)})}, nil
}

// compactionAnswer is an answer that holds only the compaction block.
func (n nativeMessages) compactionAnswer(m *native.Messages, add *native.Addition) *http.Response {
	id := "msg_" + identify.Digest("native", add.Block)
	if m.Stream {
		return httpbody.NewAnswer(n.request, http.StatusOK, httpbody.EventStream, add.AnswerEvents(id, m.Model))
	}
	return httpbody.NewAnswer(n.request, http.StatusOK, httpbody.JSON, add.Answer(id, m.Model))
}

func decodedPrompt(ctx context.Context, body string) (*prompt.Prompt, error) {
	return identify.Decode(anthropic.Codec{}, body, ctx.Err)
}

// signReplacement makes the token for a text in place of the conversation.
func (n nativeMessages) signReplacement(ctx context.Context, m *native.Messages, kind string, made replacement) (string, error) {
	return n.t.tokenSecret.seal(ctx, &n.t.options, native.Token{
		API: wire.Anthropic, Kind: kind, Thread: n.logConversation(ctx, m.Body(), made),
		Digest: native.Digest(made.text), Structured: &made.summary,
	})
}
