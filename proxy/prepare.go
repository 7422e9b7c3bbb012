package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/dialect"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// asSummary is the request as a question for a summary, which its conversation never sees.
func (r *parsedRequest) asSummary() *parsedRequest {
	out := *r
	out.isSummary = true
	return &out
}

// minBytesPerToken is about how many bytes a token has in dense text, code and JSON.
const minBytesPerToken = 3

// beginStep finds the conversation of a request, appends what is new to its log, and has its
// session compact and render. changed says that the log holds messages that the client does
// not have.
func (st *stepper) beginStep(ctx context.Context, x *received, r *parsedRequest) (s *step, changed bool, err error) {
	compactor, err := st.compactors.compactor(r.model, st.canOfferTools(x, r))
	if err != nil {
		return nil, false, err
	}
	s = &step{parsed: r, input: palimpsest.Step{Base: r.WithoutMessages(), Profile: st.renderProfile(ctx, x, r.model), Agent: st.agentModel(x, r)}}
	if !st.canOfferTools(x, r) {
		s.input.Profile.Reach = render.Told
	}
	st.setLimits(x, &s.input, r)
	for n := 1; ; n++ {
		at, err := st.conversations.findConversation(ctx, x, r)
		if err == nil {
			changed = at.HasHidden
			s.logID, s.openLookups = at.Log, at.OpenLookups
			s.earlierLogs, _ = st.conversations.earlierLogs(ctx, x, r, at) // without them the model can recall less, and that is all
			s.input.Messages = r.News(at.Logged, r.userAgent)
			s.session = compactor.Session(s.logID, s.earlierLogs...)
			s.prepared, err = s.session.PrepareStep(ctx, s.input)
		}
		if err == nil {
			st.requests.SetLog(r.Request, s.logID)
			return s, changed, nil
		}
		if n == maxTries || !isConflict(err) {
			return s, false, err
		}
	}
}

// setLimits says how large a step may be.
func (st *stepper) setLimits(x *received, s *palimpsest.Step, r *parsedRequest) {
	s.Output = outputReserve(r.model, r.Prompt)
	s.Window = r.model.WindowBeside(s.Output)
	s.Budget = x.clientBudget(s)
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

// maxTries bounds the tries to append to a log that other requests of the same conversation
// write to as well.
const maxTries = 8

func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, thread.ErrDuplicateID)
}

// renderProfile is what the provider's API demands of a prompt. Only models that are known not
// to bind their thinking to the messages before it keep it, and those of providers that are
// known to demand it.
func (st *stepper) renderProfile(ctx context.Context, x *received, m token.Model) render.Profile {
	p := render.For(x.endpoint.dialect.API())
	p.LastUser = true // models of other providers behind the same API demand it too
	rule := st.models.reasoningRule(ctx, x, m)
	p.ReasoningEverywhere = rule != nil && rule.Holds
	p.BoundReasoning = !p.ReasoningEverywhere && (m.BindsThinking || p.BoundReasoning && m.Source == "")
	return p
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

// compactAfterOverflow makes a smaller request of one that was refused as too long.
func (st *stepper) compactAfterOverflow(ctx context.Context, x *received, d decision) (decision, error) {
	if d.step != nil {
		return st.compactMore(ctx, x, d.step)
	}
	r, reason, err := st.parser.parsedOr(ctx, x, d.parsed)
	if r == nil {
		return forward(reason), err
	}
	r = st.withModelNow(ctx, x, r)
	switch r.kind {
	case identify.Step:
	case identify.OwnCompaction:
		r = r.asSummary()
	default:
		return decision{action: Passed, reason: string(r.kind), parsed: r}, nil
	}
	d, err = st.prepare(ctx, x, r, true)
	if d.action != Passed && err == nil {
		d.action = Recovered
	}
	return d, err
}

// withModelNow is the request with what is known of its model by now: a refusal may have named the
// window.
func (st *stepper) withModelNow(ctx context.Context, x *received, r *parsedRequest) *parsedRequest {
	out := *r
	out.model = st.models.modelNow(ctx, x, x.modelName(r))
	return &out
}

// compactMore compacts further than the last rendering, to what the model is now known to take.
func (st *stepper) compactMore(ctx context.Context, x *received, s *step) (decision, error) {
	now, refused := *s, *s.prepared
	now.parsed = st.withModelNow(ctx, x, s.parsed)
	st.setLimits(x, &now.input, now.parsed)
	st.setLimits(x, &refused.Step, now.parsed)
	s = &now
	made, err := s.session.Overflowed(ctx, &refused)
	if errors.Is(err, palimpsest.ErrNoRoom) {
		return decision{action: Passed, reason: reasonNoRoom, parsed: s.parsed, step: s}, nil
	}
	if err != nil {
		return decision{step: s}, err
	}
	d, err := st.encodePrepared(ctx, x, s, made, false)
	if d.action != Passed {
		d.action = Recovered
	}
	d.tokensBefore = max(d.tokensBefore, s.prepared.Before) // an earlier try may have compacted too
	return d, err
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
	if current.Empty() && !changed && !x.held.mustReplaceBody() && (len(s.earlierLogs) == 0 || !st.canOfferTools(x, s.parsed)) {
		d.action, d.reason = Passed, cmp.Or(d.reason, reasonBelowMark)
		return d, nil
	}
	log, err := st.conversations.log.Load(ctx, s.logID)
	if err != nil {
		return d, err
	}
	rendered := x.held.withCachePoint(withCurrentBytes(made.Prompt, log, s.parsed))
	next.toolsOffered = st.canOfferTools(x, s.parsed) && slices.ContainsFunc(rendered.Tools, isOurDeclaration)
	if d.body, err = x.endpoint.dialect.Encode(rendered); err != nil {
		return d, fmt.Errorf("encode: %w", err)
	}
	return d, nil
}

// reasonOfFailed counts a compaction that failed, unless the request cannot be made smaller.
func (st *stepper) reasonOfFailed(x *received, err error) string {
	if errors.Is(err, palimpsest.ErrOverBudget) {
		return reasonNoRoom
	}
	st.faults.Add(1)
	return reasonFailed
}

// canOfferTools reports whether the model may be offered our tools: if the client offers some,
// none by our names, and the answer can be read.
func (st *stepper) canOfferTools(x *received, r *parsedRequest) bool {
	tools := r.Prompt.Tools
	return !st.options.NoTools && len(tools) > 0 && !slices.ContainsFunc(tools, isOurDeclaration) && x.endpoint.dialect.CanReadAnswer(x.request, r.Members)
}

func isOurDeclaration(t prompt.Tool) bool { return dialect.IsOurTool(t.Name) }

// prepareCount makes a request to count tokens count what would be sent. It writes nothing: an
// unknown conversation is counted as it is.
func (st *stepper) prepareCount(ctx context.Context, x *received) (decision, error) {
	r, reason, err := st.parser.parseRequest(ctx, x)
	if err != nil || r == nil || len(r.IDs) == 0 || r.kind == identify.ServerSide {
		return forward(cmp.Or(reason, string(identify.Empty))), err
	}
	at, err := identify.Find(r.base, r.Prompt.Messages, r.IDs, st.conversations.knownLogs(ctx, x, r, false))
	if err != nil || at.Thread == nil || at.Fork {
		return st.countUncompacted(x, r, err)
	}
	current, _, err := st.conversations.plans.Current(ctx, at.Log)
	if err != nil || current.Empty() {
		return st.countUncompacted(x, r, err)
	}
	whole, err := at.Thread.Append(r.News(at.Logged, r.userAgent)...)
	if err != nil {
		return decision{}, err
	}
	offered := st.canOfferTools(x, r)
	compactor, err := st.compactors.compactor(r.model, offered)
	if err != nil {
		return decision{}, err
	}
	s := &step{logID: at.Log, parsed: r}
	around, profile := *r.Prompt, st.renderProfile(ctx, x, r.model)
	if offered {
		tools, err := compactor.Session(s.logID).Tools(ctx)
		if err != nil {
			return decision{step: s}, err
		}
		around.Tools = append(slices.Clip(around.Tools), tools...)
	} else {
		profile.Reach = render.Told
	}
	around.System = profile.Reach.AddNote(around.System)
	res, err := compactor.Render(current, palimpsest.Request{Thread: whole, Base: &around, Profile: profile})
	if err != nil {
		return decision{step: s}, err
	}
	body, err := x.endpoint.dialect.Encode(withCurrentBytes(res.Prompt, whole, r))
	if err != nil {
		return decision{step: s}, fmt.Errorf("encode: %w", err)
	}
	return decision{action: Planned, parsed: r, step: s, body: body, tokensBefore: res.Before, tokensSent: res.After}, nil
}

// countUncompacted counts a conversation without a plan: as the client sent it, or with the
// history that the provider holds put back in.
func (st *stepper) countUncompacted(x *received, r *parsedRequest, err error) (decision, error) {
	if err != nil || !x.held.mustReplaceBody() {
		return forward("count"), err
	}
	body, err := x.endpoint.dialect.Encode(r.Prompt)
	if err != nil {
		return decision{}, fmt.Errorf("encode: %w", err)
	}
	return decision{action: Planned, parsed: r, body: body}, nil
}
