package proxy

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/identify"
	"github.com/palimpsest-ai/palimpsest/proxy/native"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// nativeMessages emulates the context management and the compaction of the
// Anthropic Messages API.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
type nativeMessages struct{}

func (n nativeMessages) begin(ctx context.Context, x *exchange, body string, emulated bool) (emulation, error) {
	if emulated && !mentions(body) {
		return n.plain(x), nil
	}
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}, nil // the provider says it better
	}
	if emulated {
		err = m.Ask()
	}
	if err == nil {
		err = m.Expand(x.opener(ctx, wire.Anthropic), emulated)
	}
	var done emulation
	if err == nil && emulated && (m.Managed || m.OnDemand) {
		done, err = n.ask(ctx, x, m)
	} else if err == nil && m.Changed() {
		done = n.onward(x, m, emulated)
	} else if err == nil && emulated {
		done = n.plain(x)
	}
	var refusal *native.Refusal
	if errors.As(err, &refusal) {
		return emulation{answer: answering(x.request, http.StatusBadRequest, jsonKind, refusal.Body())}, nil
	}
	return done, err
}

// plain is for a request that asks for nothing, of a client that may.
func (nativeMessages) plain(x *exchange) emulation {
	if !namesBetas(x.request.Header) {
		return emulation{}
	}
	out := emulation{header: withoutBetas(x.request.Header)}
	if x.endpoint.task == generate && compacts(x.request.Header) {
		out.shape = func(res *http.Response) (*http.Response, error) {
			return shaped(res, generate, &native.Addition{Iterations: true})
		}
	}
	return out
}

// compacts reports whether a client names the beta under which the usage of every
// answer is told by iterations.
func compacts(h http.Header) bool {
	return strings.Contains(strings.Join(h.Values(betaHeader), ","), native.BetaCompact)
}

func (n nativeMessages) stripped(x *exchange, body string, emulated bool) emulation {
	m, err := native.ReadMessages(body)
	if err != nil {
		return emulation{}
	}
	if emulated && m.Ask() == nil && m.OnDemand && x.endpoint.task == generate {
		return emulation{answer: answering(x.request, 529, jsonKind, native.Unavailable())}
	}
	if err := m.Expand(nil, emulated); err != nil {
		return emulation{}
	}
	return n.onward(x, m, emulated)
}

// onward is the request for the upstream as it is now.
func (nativeMessages) onward(x *exchange, m *native.Messages, emulated bool) emulation {
	out := emulation{body: m.Body()}
	if emulated {
		out.header = withoutBetas(x.request.Header)
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

// withoutBetas leaves them out.
func withoutBetas(h http.Header) http.Header {
	out := h.Clone()
	var left []string
	for _, line := range h.Values(betaHeader) {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" && !slices.Contains(betas, beta) {
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
func (n nativeMessages) ask(ctx context.Context, x *exchange, m *native.Messages) (emulation, error) {
	switch {
	case m.OnDemand && x.endpoint.task == count:
		return n.onward(x, m, true), nil // it counts the conversation as it was sent
	case m.Held() && (m.OnDemand || slices.ContainsFunc(m.Edits, func(e native.Edit) bool { return e.Type == native.Compact })):
		return emulation{answer: threadless(x.request)}, nil // the client sends the whole then
	case m.OnDemand:
		return n.onDemand(ctx, x, m)
	}
	memo, err := x.counts(m.Model)
	if err != nil {
		return emulation{}, err
	}
	tokensOf := memo.Counter().Text
	tokens := 0
	if slices.ContainsFunc(m.Edits, func(e native.Edit) bool { return e.Trigger > 0 && !e.ByUses && m.Size() > e.Trigger }) {
		p, err := decodedPrompt(m.Body())
		if err != nil {
			return n.onward(x, m, true), nil // the provider says what is wrong with it
		}
		tokens = memo.Prompt(p)
	}
	add := &native.Addition{Managed: true, Iterations: compacts(x.request.Header)}
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
			if x.endpoint.task == generate && tokens >= e.Trigger && add.Block == "" {
				if err := n.compact(ctx, x, m, e, add); err != nil {
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
		return emulation{answer: n.alone(x, m, add)}, nil
	}
	if m.Edited() && x.t.model(m.Model).BindsThinking {
		m.Unbind()
	}
	out := n.onward(x, m, true)
	out.settled = m.Edited()
	out.shape = func(res *http.Response) (*http.Response, error) { return shaped(res, x.endpoint.task, add) }
	return out, nil
}

// compact puts a summary in place of the whole conversation. Where that would
// save less than half of it nothing is done.
func (nativeMessages) compact(ctx context.Context, x *exchange, m *native.Messages, e native.Edit, add *native.Addition) error {
	p, err := decodedPrompt(m.Body())
	if err != nil {
		return err
	}
	made, size, err := x.summarized(ctx, p, m, e.Instructions)
	if err != nil || 2*made.tokens > size {
		return err
	}
	if e.Pause {
		if err := m.Invalid(); err != nil {
			return err // nobody else will look at the request
		}
	}
	token, err := x.signed(ctx, m, native.BetaCompact, made, size)
	if err != nil {
		return err
	}
	add.Block = native.ThresholdBlock(made.text, token)
	m.Replace(made.text)
	return nil
}

// onDemand answers a request for nothing but a summary.
func (n nativeMessages) onDemand(ctx context.Context, x *exchange, m *native.Messages) (emulation, error) {
	if m.Empty() {
		return emulation{}, &native.Refusal{Code: "compaction_nothing_to_summarize", Message: "messages: there is nothing to summarize"}
	}
	if err := m.Invalid(); err != nil {
		return emulation{}, err
	}
	p, err := decodedPrompt(m.Body())
	if err != nil {
		return emulation{}, err
	}
	made, size, err := x.summarized(ctx, p, m, m.Instructions)
	if err != nil {
		return emulation{}, err
	}
	token, err := x.signed(ctx, m, native.BetaOnDemand, made, size)
	if err != nil {
		return emulation{}, err
	}
	return emulation{answer: n.alone(x, m, &native.Addition{Block: native.SignedBlock(made.text, token)})}, nil
}

// alone is an answer with nothing but the block.
func (nativeMessages) alone(x *exchange, m *native.Messages, add *native.Addition) *http.Response {
	id := "msg_" + identify.Digest("native", add.Block)
	if m.Stream {
		return answering(x.request, http.StatusOK, streamKind, add.Stream(id, m.Model))
	}
	return answering(x.request, http.StatusOK, jsonKind, add.Alone(id, m.Model))
}

// decodedPrompt decodes a request as far as a summary needs it.
func decodedPrompt(body string) (*prompt.Prompt, error) {
	return identify.Decode(anthropic.Codec{}, []byte(body))
}

// summarized makes the text that stands for the conversation, and counts what it
// stands for.
func (x *exchange) summarized(ctx context.Context, p *prompt.Prompt, m *native.Messages, instructions string) (replacement, int, error) {
	memo, err := x.counts(m.Model)
	if err != nil {
		return replacement{}, 0, err
	}
	size := 0
	for i := range p.Messages {
		size += memo.Message(&p.Messages[i])
	}
	made, err := x.replacement(ctx, p, m.Previous, instructions)
	return made, size, err
}

// signed is the opaque value of a text that stands for a request of so many
// tokens.
func (x *exchange) signed(ctx context.Context, m *native.Messages, kind string, made replacement, size int) (string, error) {
	return x.sealed(ctx, native.Token{
		API: wire.Anthropic, Kind: kind, Thread: x.recorded(ctx, m.Body(), size, made.tokens),
		Digest: native.Digest(made.text), Kept: &made.summary,
	})
}
