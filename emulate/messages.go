package emulate

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/canonjson"
	"github.com/palimpsest-ai/palimpsest/internal/httpbody"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/native"
	"github.com/palimpsest-ai/palimpsest/internal/sse"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/wire"
	"github.com/palimpsest-ai/palimpsest/wire/anthropic"
)

// messages does the context management and the compaction of the Anthropic Messages API.
// https://docs.anthropic.com/en/docs/build-with-claude/context-editing
// https://docs.anthropic.com/en/docs/build-with-claude/compaction
type messages struct{ work }

func (n messages) apply(ctx context.Context) (Result, error) {
	if !mayAskCompaction(n.r.Body) {
		return n.withoutBetaHeader(), nil
	}
	m, err := native.ReadMessages(n.r.Body)
	if err != nil {
		return Result{Request: n.r}, nil // the provider says it better
	}
	err = m.ReadCompaction()
	if _, held := m.Thread(); held {
		if err == nil && (m.Managed || m.OnDemand) {
			// Providers do not compact threads either: the client then sends the whole history.
			return Result{Answer: refusalAnswer(n.r.HTTP, native.ThreadUnsupported())}, nil
		}
		return n.withoutBetaHeader(), nil
	}
	if err == nil {
		err = m.Expand(native.OpenerFor(wire.Anthropic, func() ([]byte, error) { return n.Key(ctx) }), true)
	}
	switch {
	case err != nil:
		return Result{}, err
	case m.Managed || m.OnDemand:
		return n.applyEdits(ctx, m)
	case m.Changed():
		return n.forUpstream(m), nil
	}
	return n.withoutBetaHeader(), nil
}

// withoutBetaHeader takes the emulated betas off a request that asks for nothing.
func (n messages) withoutBetaHeader() Result {
	if !namesBetas(n.r.HTTP.Header, emulatedBetas...) {
		return Result{Request: n.r}
	}
	out := Result{Request: n.r.withoutBetas()}
	if !n.r.Counts && namesBetas(n.r.HTTP.Header, native.BetaCompact) {
		n.reshape(&out, &addition{iterate: true})
	}
	return out
}

func (n messages) fallback() Result {
	m, err := native.ReadMessages(n.r.Body)
	if err != nil {
		return Result{Request: n.r}
	}
	if m.ReadCompaction() == nil && m.OnDemand && !n.r.Counts {
		return Result{Answer: httpbody.NewAnswer(n.r.HTTP, 529, httpbody.JSON, native.Unavailable())}
	}
	if err := m.Expand(nil, true); err != nil {
		return Result{Request: n.r}
	}
	return n.forUpstream(m)
}

// forUpstream is the request as it is now, without what the upstream does not know.
func (n messages) forUpstream(m *native.Messages) Result {
	return Result{Request: n.r.with(m.Body()).withoutBetas()}
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

func (r Request) withoutBetas() Request {
	own := *r.HTTP
	own.Header = httpbody.WithoutListed(own.Header, betaHeader, func(beta string) bool { return slices.Contains(emulatedBetas, beta) })
	r.HTTP = &own
	return r
}

func (n messages) applyEdits(ctx context.Context, m *native.Messages) (Result, error) {
	switch {
	case m.OnDemand && n.r.Counts:
		return n.forUpstream(m), nil // the count is of the conversation as it was sent
	case m.OnDemand:
		return n.answerWithSummary(ctx, m)
	}
	_, counter, err := n.Model(m.Model)
	if err != nil {
		return Result{}, err
	}
	tokensOf := counter.Text
	tokens := 0
	if slices.ContainsFunc(m.Edits, func(e native.Edit) bool { return e.Trigger > 0 && !e.ByUses && m.Size() > e.Trigger }) {
		p, err := decodedPrompt(m.Body())
		if err != nil {
			return n.forUpstream(m), nil // the provider says what is wrong with it
		}
		tokens = counter.Prompt(p)
	}
	add := &addition{managed: true, iterate: namesBetas(n.r.HTTP.Header, native.BetaCompact)}
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
			add.iterate = true
			if !n.r.Counts && tokens >= e.Trigger && add.block == "" {
				if err := n.compactConversation(ctx, m, e, add); err != nil {
					return Result{}, err
				}
				paused = e.Pause && add.block != ""
			}
		}
		if ok {
			add.applied = append(add.applied, done)
			tokens -= done.Tokens
		}
	}
	if paused {
		return Result{Answer: n.compactionAnswer(m, add), Compactions: 1}, nil
	}
	if model, _, err := n.Model(m.Model); err == nil && model.BindsThinking && m.Edited() {
		m.ClearBoundThinking()
	}
	out := n.forUpstream(m)
	out.Request.Edited = m.Edited()
	if add.block != "" {
		out.Compactions = 1
	}
	n.reshape(&out, add)
	return out, nil
}

// reshape has an answer say what the API says of compaction.
func (n messages) reshape(m *Result, add *addition) {
	httpbody.AcceptReadable(m.Request.HTTP) // a copy of the client's
	whole := add.addToAnswer
	if n.r.Counts {
		whole = add.addToCount
	}
	m.Finish = func(res *http.Response, _ *Place) {
		httpbody.RewriteAnswer(res, n.streamFault, whole, func(e sse.Event) (out []byte) {
			for _, data := range add.addToEvent(e.Data) {
				if data == e.Data {
					out = append(out, e.Raw...)
				} else {
					out = append(out, sse.Event{Name: gjson.Get(data, "type").Str}.WithData(data)...)
				}
			}
			return out
		})
	}
}

// compactConversation puts a summary in place of the whole conversation, unless that saves less than half
// of it.
func (n messages) compactConversation(ctx context.Context, m *native.Messages, e native.Edit, add *addition) error {
	by, err := n.makeReplacement(ctx, m, e.Instructions)
	if err != nil || 2*by.tokens > by.before {
		return err
	}
	if e.Pause {
		if err := m.Validate(); err != nil {
			return err // no upstream will look at the request
		}
	}
	token, err := n.signReplacement(ctx, m, native.BetaCompact, by)
	if err != nil {
		return err
	}
	add.block = native.ThresholdBlock(by.text, token)
	m.ReplaceMessages(by.text)
	return nil
}

// answerWithSummary answers a request for a summary alone.
func (n messages) answerWithSummary(ctx context.Context, m *native.Messages) (Result, error) {
	if m.NothingToSummarize() {
		return Result{}, &native.Refusal{API: wire.Anthropic, Code: "compaction_nothing_to_summarize", Message: "messages: there is nothing to summarize"}
	}
	if err := m.Validate(); err != nil {
		return Result{}, err
	}
	by, err := n.makeReplacement(ctx, m, m.Instructions)
	if err != nil {
		return Result{}, err
	}
	token, err := n.signReplacement(ctx, m, native.BetaOnDemand, by)
	if err != nil {
		return Result{}, err
	}
	return Result{Answer: n.compactionAnswer(m, &addition{block: native.SignedBlock(by.text, token)}), Compactions: 1}, nil
}

// compactionAnswer is an answer that holds only the compaction block.
func (n messages) compactionAnswer(m *native.Messages, add *addition) *http.Response {
	id := "msg_" + canonjson.Digest("native", add.block)
	if m.Stream {
		return httpbody.NewAnswer(n.r.HTTP, http.StatusOK, httpbody.EventStream, add.answerEvents(id, m.Model))
	}
	return httpbody.NewAnswer(n.r.HTTP, http.StatusOK, httpbody.JSON, add.answer(id, m.Model))
}

func decodedPrompt(body string) (*prompt.Prompt, error) {
	p, err := anthropic.Codec{}.Decode(body)
	if err == nil {
		p.Messages = injected.MarkKinds(p.Messages, nil)
	}
	return p, err
}

// signReplacement logs the conversation that a text stands for, reports the compaction, and makes the token for
// the text.
func (n messages) signReplacement(ctx context.Context, m *native.Messages, kind string, by replacement) (string, error) {
	log := n.log.Record(ctx, n.r.with(m.Body())) // empty if it is not logged: the text does not depend on it
	event.Emit(ctx, n.Events, event.Event{Type: event.Completed, ThreadID: log, Policy: "native", TokensBefore: by.before, TokensAfter: by.tokens, Duration: time.Since(n.r.Start), Details: map[string]any{"trigger": "native"}})
	return n.seal(ctx, native.Token{
		API: wire.Anthropic, Kind: kind, Thread: log,
		Digest: native.Digest(by.text), Structured: &by.summary,
	})
}
