package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// stepper decides what is sent.
type stepper struct {
	*core
	models        *models
	compactors    *compactors
	conversations *conversations
	parser        *parser
}

// decide chooses what to send: the client's own bytes, or ours.
func (st *stepper) decide(ctx context.Context, x *received) (decision, error) {
	switch x.endpoint.task {
	case generate:
		return st.decidePrompt(ctx, x)
	case count:
		return st.decideCount(ctx, x)
	}
	return forward(reasonNative), nil
}

// decidePrompt is decide for a request that asks the model.
func (st *stepper) decidePrompt(ctx context.Context, x *received) (decision, error) {
	switch {
	case x.edited:
		return forward(reasonNative), nil
	case st.isSmall(ctx, x):
		return forward(reasonBelowMark), nil
	}
	r, reason, err := st.parser.parseRequest(ctx, x)
	if err != nil {
		return decision{}, err
	}
	if r == nil {
		return forward(reason), nil
	}
	if reason != "" {
		st.conversations.lineage.noteSideRequest(r.client.SessionID(), r.kind, r.bytes)
	}
	d := decision{action: Passed, reason: reason, parsed: r}
	switch r.kind {
	case identify.Step:
		return st.prepare(ctx, x, r)
	case identify.OwnCompaction:
		smaller, err := st.mustShrinkSummary(ctx, x, r)
		if err != nil || !smaller {
			return d, err
		}
		return st.prepare(ctx, x, r.asSummary())
	}
	return d, nil
}

// asSummary is the request as a question for a summary, which its conversation never sees.
func (r *parsedRequest) asSummary() *parsedRequest {
	out := *r
	out.isSummary = true
	return &out
}

// isSmall reports whether a request is too small for any policy. With an unknown window the
// automatic policy waits for the provider to refuse one; from then on the requests for the model are
// looked at, since their conversations may have a plan. One of more bytes than the API reads is not small.
func (st *stepper) isSmall(ctx context.Context, x *received) bool {
	if x.request.Header.Get("Content-Encoding") != "" || x.thread != "" || x.managed || st.offersContextTools() {
		return false
	}
	if h := x.held; h != nil && h.rebuilt != nil {
		return !h.rebuilt.mustReplaceBody && h.rebuilt.Log == "" && len(h.rebuilt.body) < alwaysSmall
	}
	if x.body.Len() < alwaysSmall {
		return true
	}
	switch st.options.Config.Policy.(type) {
	case nil, policy.Auto:
		most := cmp.Or(wire.LimitsOf(x.endpoint.dialect.API(), "").Bytes, math.MaxInt)
		return x.body.Len() <= most && st.models.hasNoLimit(ctx, x, x.modelName(nil))
	}
	return false
}

// alwaysSmall is the size of a body, in bytes, below which no policy is asked.
const alwaysSmall = 12 << 10

// prepare finds the conversation of a request, appends what is new to its log, and renders.
func (st *stepper) prepare(ctx context.Context, x *received, r *parsedRequest) (decision, error) {
	s, changed, err := st.beginStep(ctx, x, r)
	if err != nil {
		return decision{step: s}, err
	}
	return st.encodePrepared(ctx, x, s, s.prepared, changed)
}

// continueStep appends messages to the log of a step, and renders its next request.
func (st *stepper) continueStep(ctx context.Context, x *received, s *step, news []thread.Message) (decision, error) {
	input := s.input
	input.Messages = news
	made, err := s.session.PrepareStep(ctx, input)
	if err != nil {
		return decision{step: s}, err
	}
	return st.encodePrepared(ctx, x, s, made, true)
}

// beginStep finds the conversation of a request, appends what is new to its log, and has its
// session compact and render. changed says that the log holds messages that the client does
// not have.
func (st *stepper) beginStep(ctx context.Context, x *received, r *parsedRequest) (s *step, changed bool, err error) {
	offered := st.canOfferTools(x, r)
	compactor, err := st.compactors.compactor(r.model, offered)
	if err != nil {
		return nil, false, err
	}
	s = &step{parsed: r, canOfferTools: offered, input: palimpsest.Step{Base: r.WithoutMessages(), Profile: st.renderProfile(ctx, x, r.model), Agent: st.agentModel(x, r)}}
	if !offered {
		s.input.Profile.Reach = render.Told
	}
	st.setLimits(x, &s.input, r)
	for n := 1; ; n++ {
		at, err := st.conversations.findConversation(ctx, x, r)
		if err == nil {
			r = r.readAs(at.Request)
			changed, s.parsed = at.HasHidden, r
			s.logID, s.openLookups = at.Log, at.OpenLookups
			s.earlierLogs, _ = st.conversations.earlierLogs(ctx, x, r, at) // without them the model can recall less, and that is all
			s.session = compactor.Session(s.logID, s.earlierLogs...)
			input := s.input
			input.Messages = r.News(at.Logged, x.request.UserAgent()) // not kept: the log has its own
			if s.countsWhole = !offered && len(at.Cleared) > 0; offered {
				input.Cleared = at.Cleared
			}
			s.prepared, err = s.session.PrepareStep(ctx, input)
		}
		if err == nil {
			if s.planBefore = s.prepared.PlanVersion; s.prepared.Compacted != nil {
				s.planBefore--
			}
			st.requests.SetLog(r.Request, s.logID)
			return s, changed, nil
		}
		if n == maxTries || !isConflict(err) {
			return s, false, err
		}
	}
}

// canOfferTools reports whether the model may be offered our tools: if the client offers some,
// none by our names, and the answer can be read.
func (st *stepper) canOfferTools(x *received, r *parsedRequest) bool {
	tools := r.Prompt.Tools
	return !st.options.NoTools && len(tools) > 0 && !slices.ContainsFunc(tools, isOurDeclaration) && x.endpoint.dialect.CanReadAnswer(x.request, r.Members)
}

// offersContextTools reports whether the model sees and steers its context: its tools are in every
// request that can have them.
func (st *stepper) offersContextTools() bool {
	r := st.options.Config.Recall
	return r != nil && r.ContextTools && !st.options.NoTools
}

func isOurDeclaration(t prompt.Tool) bool { return dialect.IsOurTool(t.Name) }

// renderProfile is what the provider's API demands of a prompt. Only models that are known not
// to bind their thinking to the messages before it keep it, and those of providers that are
// known to demand it.
func (st *stepper) renderProfile(ctx context.Context, x *received, m token.Model) render.Profile {
	p := render.For(x.endpoint.dialect.API())
	p.LastUser = true // models of other providers behind the same API demand it too
	p.ReasoningEverywhere = st.models.learnedOf(ctx, x, m.Name).Reasoning
	p.BoundReasoning = !p.ReasoningEverywhere && (m.BindsThinking || p.BoundReasoning && m.Source == "")
	return p
}

// agentModel is a client of the model that the request asks; nil without Options.Agent.
func (st *stepper) agentModel(x *received, r *parsedRequest) llm.Generator {
	if st.options.Agent == nil {
		return nil
	}
	name := x.modelName(r)
	g, err := st.options.Agent(x.endpoint.dialect.API(), name, &http.Client{Transport: agentTransport{x.request, st.options.Base}})
	if err != nil {
		st.emitFault(x, "agent", err, nil)
		return nil
	}
	return g
}

// agentDeadline bounds how long a request waits for a summary by the agent's own model: more than
// summarizers take, and less than clients wait.
const agentDeadline = 3 * time.Minute

// agentTransport sends requests to the agent's provider, with the headers of the agent's request. Its
// credentials are read from that each time, and kept nowhere.
type agentTransport struct {
	request *http.Request
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b agentTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	own := b.request
	out := r.Clone(r.Context())
	address := *own.URL
	address.Path = strings.TrimSuffix(address.Path, "/compact") // a request for a compaction goes below the model's path
	address.RawPath = ""
	out.URL, out.Host = &address, own.Host
	out.Header = own.Header.Clone()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Accept-Encoding", "Idempotency-Key"} {
		out.Header.Del(name)
	}
	for _, name := range []string{"Content-Type", "Accept"} { // of this body
		if values, ok := r.Header[name]; ok {
			out.Header[name] = values
		}
	}
	return send(b.base, out)
}

// setLimits says how large a step may be.
func (st *stepper) setLimits(x *received, s *palimpsest.Step, r *parsedRequest) {
	s.Output = outputReserve(r.model, r.Prompt)
	s.Window = r.model.WindowBeside(s.Output)
	s.Budget = x.clientBudget(s)
	if r.retriesRefused {
		s.Window, s.Budget = math.MaxInt32, 0 // not due, whatever was learned of its size since
	}
}

// clientBudget is the budget, in tokens, of a request whose client waits for compactions from a
// threshold on; 0 if only the window bounds it. A policy compacts at nine tenths of it.
func (x *received) clientBudget(s *palimpsest.Step) int {
	budget := x.threshold * 10 / 9
	if room := s.Window - s.Output; room > 0 {
		budget = min(budget, room)
	}
	return budget
}

// outputReserve is the room in tokens that is kept free for the answer: what the request asks
// for, else enough for a long one, and never more than a third of the window. It is less if
// system and tools would leave the conversation less than a third of the window: agents ask
// for the longest answer that any model gives, and a conversation without room cannot be
// compacted.
func outputReserve(m token.Model, p *prompt.Prompt) int {
	asked := p.MaxOutput
	if asked == 0 {
		asked = defaultOutput
		if m.MaxOutput > 0 && m.MaxOutput < asked {
			asked = m.MaxOutput
		}
	}
	left := m.Window - systemTokens(p) - m.Window/3
	return min(asked, m.Window/3, max(left, m.Window/8))
}

// defaultOutput is the room for the answer to a request that names no limit, in tokens.
const defaultOutput = 16_000

// systemTokens is about what system and tools take.
func systemTokens(p *prompt.Prompt) int {
	bytes := 0
	for i := range p.System {
		bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		bytes += len(p.Tools[i].Name) + len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	return bytes / minBytesPerToken
}

// maxTries bounds the tries to append to a log that other requests of the same conversation
// write to as well.
const maxTries = 8

func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, thread.ErrDuplicateID)
}

// encodePrepared encodes a rendering. Without a plan it is the client's own request, unless
// changed says that the log holds messages that the client does not have.
func (st *stepper) encodePrepared(ctx context.Context, x *received, s *step, made *palimpsest.Prepared, changed bool) (decision, error) {
	next := *s
	next.prepared = made
	d := decision{action: Planned, parsed: s.parsed, step: &next, tokensBefore: made.Before, tokensSent: made.Tokens}
	current, _, err := st.conversations.plans.Current(ctx, s.logID)
	if err != nil {
		return d, err
	}
	if made.Compacted != nil {
		st.compactions.Add(1)
		d.action = Compacted
	} else if made.Failed != nil {
		d.reason = st.reasonOfFailed(x, made.Failed)
	} else if isCompacting(ctx, &st.options.Config, s.logID) {
		d.reason = reasonCompacting
	}
	offers := s.canOfferTools && (len(s.earlierLogs) > 0 || st.offersContextTools())
	if current.Empty() && !changed && !x.held.mustReplaceBody() && !offers {
		d.action, d.reason = Passed, cmp.Or(d.reason, reasonBelowMark)
		return d, nil
	}
	log, err := st.conversations.log.Load(ctx, s.logID)
	if err != nil {
		return d, err
	}
	rendered := x.held.withCachePoint(withCurrentBytes(made.Prompt, log, s.parsed))
	next.toolsOffered = s.canOfferTools && slices.ContainsFunc(rendered.Tools, isOurDeclaration)
	if d.body, err = x.endpoint.dialect.Encode(rendered); err != nil {
		return d, fmt.Errorf("encode: %w", err)
	}
	return d, nil
}

func isCompacting(ctx context.Context, c *palimpsest.Config, id string) bool {
	if c.Jobs == nil {
		return false
	}
	busy, err := c.Jobs.Busy(ctx, job.CompactKey(c.Domain, id))
	return err == nil && busy
}

// mustReplaceBody reports whether the provider could not answer the client's own bytes.
func (h *heldHistory) mustReplaceBody() bool {
	return h != nil && h.rebuilt != nil && h.rebuilt.mustReplaceBody
}

// reasonOfFailed counts a compaction that failed, unless the request cannot be made smaller.
func (st *stepper) reasonOfFailed(x *received, err error) string {
	if errors.Is(err, policy.ErrOverBudget) {
		return reasonNoRoom
	}
	st.faults.Add(1)
	return reasonFailed
}

// withCachePoint returns the prompt with its end cached, as the client asked for with the mark
// that was taken off its messages. A prompt that nothing was removed from has the client's
// own marks.
func (h *heldHistory) withCachePoint(p *prompt.Prompt) *prompt.Prompt {
	if h == nil || h.cacheTTL == nil || len(p.CachePoints) > 0 || len(p.Messages) == 0 {
		return p
	}
	out := *p
	out.CachePoints = []prompt.CachePoint{{After: len(p.Messages) - 1, TTL: *h.cacheTTL}}
	return &out
}

// mustShrinkSummary reports whether a client's request for a summary of its own history must be
// made smaller: the conversation has a plan, or the history comes near the window. The client
// has all that we removed, and cannot know how long its history is.
func (st *stepper) mustShrinkSummary(ctx context.Context, x *received, r *parsedRequest) (bool, error) {
	about, err := st.conversations.findSummarized(ctx, x, r)
	if err != nil {
		return false, err
	}
	if about.Thread != nil {
		current, _, err := st.conversations.plans.Current(ctx, about.Thread.ID())
		if err != nil || !current.Empty() {
			return true, err
		}
	}
	answer := outputReserve(r.model, r.Prompt)
	return r.model.Window > 0 && r.bytes/minBytesPerToken+answer >= r.model.WindowBeside(answer), nil
}

// minBytesPerToken is about how many bytes a token has in dense text, code and JSON.
const minBytesPerToken = 3
