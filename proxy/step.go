package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/wire"
)

// stepper decides what is sent.
type stepper struct {
	*core
	models        *models
	compactors    *compactors
	conversations *conversations
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
	r, reason, err := st.conversations.parseRequest(ctx, x)
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
		name := x.modelName(nil)
		return x.body.Len() <= most && st.models.model(name).Window == 0 && st.models.learnedOf(ctx, x, name).WindowSeen.IsZero()
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
	return st.decideBody(ctx, x, s, s.prepared, changed)
}

// continueStep appends messages to the log of a step, and renders its next request.
func (st *stepper) continueStep(ctx context.Context, x *received, s *step, news []thread.Message) (decision, error) {
	input := s.input
	input.Messages = news
	made, err := s.session.PrepareStep(ctx, input)
	if err != nil {
		return decision{step: s}, err
	}
	return st.decideBody(ctx, x, s, made, true)
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
	return !st.options.NoTools && len(tools) > 0 && !x.endpoint.declaresOurs(tools) && x.endpoint.dialect.CanReadAnswer(x.request, r.Members)
}

// maxTries bounds the tries to append to a log that other requests of the same conversation
// write to as well.
const maxTries = 8

func isConflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, thread.ErrDuplicateID)
}

// decideBody decides whether a rendering goes out, encoded, or the client's own bytes, which without a plan are the same, unless
// changed says that the log holds messages that the client does not have.
func (st *stepper) decideBody(ctx context.Context, x *received, s *step, made *palimpsest.Prepared, changed bool) (decision, error) {
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
		d.reason = st.countFailed(made.Failed)
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
	next.toolsOffered = s.canOfferTools && x.endpoint.declaresOurs(rendered.Tools)
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

// countFailed counts a compaction that failed, unless the request cannot be made smaller, and returns the reason.
func (st *stepper) countFailed(err error) string {
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

// decideCount makes a request to count tokens count what would be sent. It writes nothing: an unknown
// conversation is counted as it is.
func (st *stepper) decideCount(ctx context.Context, x *received) (decision, error) {
	r, reason, err := st.conversations.parseRequest(ctx, x)
	if err != nil || r == nil || len(r.IDs) == 0 || r.kind == identify.ServerSide {
		return forward(cmp.Or(reason, string(identify.Empty))), err
	}
	at, err := identify.Find(r.base, r.Request, st.conversations.knownLogs(ctx, x, r, false))
	if err != nil || at.Thread == nil || at.Fork {
		return st.countUncompacted(x, r, err)
	}
	current, _, err := st.conversations.plans.Current(ctx, at.Log)
	if err != nil || current.Empty() {
		return st.countUncompacted(x, r, err)
	}
	r = r.readAs(at.Request)
	whole, err := at.Thread.Append(r.News(at.Logged, x.request.UserAgent())...)
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

// withCurrentBytes is a rendered prompt with messages as the client sent them in this request, not as
// the log holds them from an earlier one: cache marks change from request to request. The
// rendered prompt is not changed, since it may be remembered for the next step.
func withCurrentBytes(rendered *prompt.Prompt, log *thread.Thread, r *parsedRequest) *prompt.Prompt {
	p := *rendered
	p.Messages = slices.Clone(rendered.Messages)
	messages, ids := r.Prompt.Messages, r.IDs
	var now map[thread.ID]*thread.Message
	next := 0 // the likely place of the next message in the log
	for k := range p.Messages {
		m := &p.Messages[k]
		at, logged := next, next < log.Len() && log.At(next).ID == m.ID
		if !logged {
			at, logged = log.Index(m.ID)
		}
		if !logged {
			continue
		}
		next = at + 1
		var fresh *thread.Message
		switch {
		case at < len(ids) && ids[at] == m.ID:
			fresh = &messages[at] // up to here the log holds just what the client sent
		case now == nil:
			now = make(map[thread.ID]*thread.Message, len(ids))
			for i, id := range ids {
				now[id] = &messages[i]
			}
			fallthrough
		default:
			fresh = now[m.ID]
		}
		if fresh == nil {
			continue
		}
		was := log.At(at)
		if len(was.Parts) != len(fresh.Parts) {
			continue
		}
		if isUnchanged(m, was) {
			id := m.ID
			*m = *fresh
			m.ID = id
			continue
		}
		own := make([]thread.Part, len(m.Parts))
		for i, part := range m.Parts {
			own[i] = currentPart(i, part, was, fresh)
		}
		m.Parts = own
	}
	return &p
}

// isUnchanged reports whether the renderer kept a message of the log as it is.
func isUnchanged(m, was *thread.Message) bool {
	return m.Frame != nil && was.Frame != nil && m.Index == was.Index && m.Frame.Raw() == was.Frame.Raw() && len(m.Parts) == len(was.Parts)
}

// currentPart is part i of a message as the client sent it now, if the renderer kept it as it is. It mostly
// stands where it was: of two equal parts one may have a cache mark.
func currentPart(i int, part thread.Part, was, fresh *thread.Message) thread.Part {
	raw := part.From().Raw
	kept := func(was thread.Part) bool { return was.From().Raw == raw }
	if raw == "" {
		return part
	}
	if i >= len(was.Parts) || !kept(was.Parts[i]) {
		i = slices.IndexFunc(was.Parts, kept)
	}
	if i < 0 {
		return part
	}
	return fresh.Parts[i]
}
