package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// nativeMessages emulates the context management and the compaction of the
// Anthropic Messages API.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
type nativeMessages struct{ *exchange }

func (n nativeMessages) begin(ctx context.Context, body string, emulated bool) (emulation, error) {
	if emulated && !mentions(body) {
		return n.plain(), nil
	}
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	if emulated {
		err = m.Ask()
	}
	if err == nil {
		err = m.Expand(n.opener(ctx, wire.Anthropic), emulated)
	}
	var done emulation
	if err == nil && emulated && (m.Managed || m.OnDemand) {
		done, err = n.ask(ctx, m)
	} else if err == nil && m.Changed() {
		done = n.onward(m, emulated)
	} else if err == nil && emulated {
		done = n.plain()
	}
	if refusal, ok := errors.AsType[*native.Refusal](err); ok {
		return emulation{answer: answering(n.request, http.StatusBadRequest, jsonKind, refusal.Body())}, nil
	}
	return done, err
}

// plain is for a request that asks for nothing, of a client that may.
func (n nativeMessages) plain() emulation {
	if !namesBetas(n.request.Header) {
		return emulation{}
	}
	out := emulation{header: withoutBetas(n.request.Header, betas...)}
	if n.endpoint.task == generate && compacts(n.request.Header) {
		out.shape = func(res *http.Response) { n.added(res, &native.Addition{Iterations: true}) }
	}
	return out
}

// compacts reports whether a client names the beta under which the usage of every
// answer is told by iterations.
func compacts(h http.Header) bool {
	return strings.Contains(strings.Join(h.Values(betaHeader), ","), native.BetaCompact)
}

func (n nativeMessages) stripped(body string, emulated bool) emulation {
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}
	}
	if emulated && m.Ask() == nil && m.OnDemand && n.endpoint.task == generate {
		return emulation{answer: answering(n.request, 529, jsonKind, native.Unavailable())}
	}
	if err := m.Expand(nil, emulated); err != nil {
		return emulation{}
	}
	return n.onward(m, emulated)
}

// onward is the request for the upstream as it is now.
func (n nativeMessages) onward(m *native.Messages, emulated bool) emulation {
	out := emulation{body: m.Body()}
	if emulated {
		out.header = withoutBetas(n.request.Header, betas...)
	}
	return out
}

// betas are those that are done here.
var betas = []string{native.BetaEdits, native.BetaCompact, native.BetaOnDemand}

// betaHeader is where a client names betas, in lists or several times.
const betaHeader = "Anthropic-Beta"

// namesBetas reports whether a client names one of them; it does so with every
// request, also where it asks for nothing.
func namesBetas(h http.Header) bool {
	return slices.ContainsFunc(betas, func(beta string) bool { return strings.Contains(strings.Join(h.Values(betaHeader), ","), beta) })
}

// withoutBetas are headers that do not name some betas.
func withoutBetas(h http.Header, gone ...string) http.Header {
	out := h.Clone()
	var left []string
	for _, line := range h.Values(betaHeader) {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" && !slices.Contains(gone, beta) {
				left = append(left, beta)
			}
		}
	}
	out.Del(betaHeader)
	if len(left) > 0 {
		out.Set(betaHeader, strings.Join(left, ","))
	}
	return out
}

// ask does what is asked for.
func (n nativeMessages) ask(ctx context.Context, m *native.Messages) (emulation, error) {
	switch {
	case m.OnDemand && n.endpoint.task == count:
		return n.onward(m, true), nil // it counts the conversation as it was sent
	case m.OnDemand:
		return n.onDemand(ctx, m)
	}
	memo, err := n.counts(m.Model)
	if err != nil {
		return emulation{}, err
	}
	tokensOf := memo.Counter().Text
	tokens := 0
	if slices.ContainsFunc(m.Edits, func(e native.Edit) bool { return e.Trigger > 0 && !e.ByUses && m.Size() > e.Trigger }) {
		p, err := decodedPrompt(ctx, m.Body())
		if err != nil {
			return n.onward(m, true), nil // the provider says what is wrong with it
		}
		tokens = memo.Prompt(p)
	}
	add := &native.Addition{Managed: true, Iterations: compacts(n.request.Header)}
	paused := false
	for _, e := range m.Edits {
		var done native.Applied
		ok := false
		switch e.Type {
		case native.ClearThinking:
			done, ok = m.ClearThinking(e, tokensOf)
		case native.ClearTools:
			done, ok = m.Clear(e, tokens, tokensOf)
		case native.Compact:
			add.Iterations = true
			if n.endpoint.task == generate && tokens >= e.Trigger && add.Block == "" {
				if err := n.compact(ctx, m, e, add); err != nil {
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
		return emulation{answer: n.alone(m, add)}, nil
	}
	if m.Edited() && n.t.model(m.Model).BindsThinking {
		m.Unbind()
	}
	out := n.onward(m, true)
	out.settled = m.Edited()
	out.shape = func(res *http.Response) { n.added(res, add) }
	return out, nil
}

// added gives an answer what it says of native compaction.
func (n nativeMessages) added(res *http.Response, add *native.Addition) {
	whole := add.Whole
	if n.endpoint.task == count {
		whole = add.Counted
	}
	n.shaped(res, whole, func(e sse.Event) (out []byte) {
		for _, data := range add.Event(e.Data) {
			if data == e.Data {
				out = append(out, e.Raw...)
			} else {
				out = append(out, sse.Event{Name: gjson.Get(data, "type").Str}.With(data)...)
			}
		}
		return out
	})
}

// compact puts a summary in place of the whole conversation. Where that would
// save less than half of it nothing is done.
func (n nativeMessages) compact(ctx context.Context, m *native.Messages, e native.Edit, add *native.Addition) error {
	p, err := decodedPrompt(ctx, m.Body())
	if err != nil {
		return err
	}
	made, size, err := n.summarized(ctx, p, m, e.Instructions)
	if err != nil || 2*made.tokens > size {
		return err
	}
	if e.Pause {
		if err := m.Invalid(); err != nil {
			return err // nobody else will look at the request
		}
	}
	token, err := n.signed(ctx, m, native.BetaCompact, made, size)
	if err != nil {
		return err
	}
	add.Block = native.ThresholdBlock(made.text, token)
	m.Replace(made.text)
	return nil
}

// onDemand answers a request for nothing but a summary.
func (n nativeMessages) onDemand(ctx context.Context, m *native.Messages) (emulation, error) {
	if m.Empty() {
		return emulation{}, &native.Refusal{Code: "compaction_nothing_to_summarize", Message: "messages: there is nothing to summarize"}
	}
	if err := m.Invalid(); err != nil {
		return emulation{}, err
	}
	p, err := decodedPrompt(ctx, m.Body())
	if err != nil {
		return emulation{}, err
	}
	made, size, err := n.summarized(ctx, p, m, m.Instructions)
	if err != nil {
		return emulation{}, err
	}
	token, err := n.signed(ctx, m, native.BetaOnDemand, made, size)
	if err != nil {
		return emulation{}, err
	}
	return emulation{answer: n.alone(m, &native.Addition{Block: native.SignedBlock(made.text, token)})}, nil
}

// alone is an answer with nothing but the block.
func (n nativeMessages) alone(m *native.Messages, add *native.Addition) *http.Response {
	id := "msg_" + identify.Digest("native", add.Block)
	if m.Stream {
		return answering(n.request, http.StatusOK, streamKind, add.Stream(id, m.Model))
	}
	return answering(n.request, http.StatusOK, jsonKind, add.Alone(id, m.Model))
}

// decodedPrompt decodes a request as far as a summary needs it.
func decodedPrompt(ctx context.Context, body string) (*prompt.Prompt, error) {
	return identify.Decode(anthropic.Codec{}, []byte(body), ctx.Err)
}

// summarized makes the text that stands for the conversation, and counts what it
// stands for.
func (n nativeMessages) summarized(ctx context.Context, p *prompt.Prompt, m *native.Messages, instructions string) (replacement, int, error) {
	memo, err := n.counts(m.Model)
	if err != nil {
		return replacement{}, 0, err
	}
	size := 0
	for i := range p.Messages {
		size += memo.Message(&p.Messages[i])
	}
	made, err := n.replacement(ctx, p, m.Previous, instructions)
	return made, size, err
}

// signed is the opaque value of a text that stands for a request of so many
// tokens.
func (n nativeMessages) signed(ctx context.Context, m *native.Messages, kind string, made replacement, size int) (string, error) {
	return n.sealed(ctx, native.Token{
		API: wire.Anthropic, Kind: kind, Thread: n.recorded(ctx, m.Body(), size, made.tokens),
		Digest: native.Digest(made.text), Kept: &made.summary,
	})
}
