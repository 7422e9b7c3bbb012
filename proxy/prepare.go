package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// toSummarize is the request as one that the conversation never sees.
func (r *reading) toSummarize() *reading {
	out := *r
	out.summary = true
	return &out
}

// leastBytes is about how many bytes a token has in dense text, code and JSON.
const leastBytes = 3

// prepare adds what is new to the log and renders. forced says that the provider has
// refused the request already.
func (x *exchange) prepare(ctx context.Context, r *reading, forced bool) (decision, error) {
	s, changed, err := x.begin(ctx, r)
	if err != nil {
		return decision{step: s}, err
	}
	if forced && s.prepared.Compacted == nil {
		return x.harder(ctx, s)
	}
	return x.finish(ctx, s, s.prepared, changed)
}

// begin finds the place of a request, and takes the step there. changed says that the log
// holds what the client does not.
func (x *exchange) begin(ctx context.Context, r *reading) (s *step, changed bool, err error) {
	compactor, err := x.t.compactor(r.model, x.offers(r))
	if err != nil {
		return nil, false, err
	}
	s = &step{read: r, ask: palimpsest.Step{
		Base: r.Shell(), Profile: x.profile(r.model), Window: limit(r.model), Output: output(r.model, r.Prompt), Agent: x.asksAgent(r),
	}}
	s.ask.Budget = x.native.budget(&s.ask)
	for n := 1; ; n++ {
		at, err := x.place(ctx, r)
		if err == nil {
			changed = at.Changed
			s.id, s.open = at.Log, at.Open
			s.earlier, _ = x.earlier(ctx, r, at) // where it cannot be read less is found, and nothing else is wrong
			s.ask.Messages = identify.Detached(r.Prompt.Messages[at.Seen:], r.IDs[at.Seen:])
			s.session = compactor.Session(s.id, s.earlier...)
			s.prepared, err = s.session.PrepareStep(ctx, s.ask)
		}
		if err == nil {
			x.t.requests.Found(r.Request, s.id)
			return s, changed, nil
		}
		if n == tries || !conflict(err) {
			return s, false, err
		}
	}
}

// tries bounds how often a log is looked at again because another request of the same
// conversation has written to it meanwhile.
const tries = 8

func conflict(err error) bool {
	return errors.Is(err, store.ErrConflict) || errors.Is(err, thread.ErrDuplicateID)
}

// profile is what the provider's API demands of a prompt. Models that are known not
// to bind their thinking to what stands before it keep it; of one that is not
// known it is not believed.
func (x *exchange) profile(m token.Model) render.Profile {
	p := render.For(x.endpoint.dialect.API())
	p.LastUser = true // models of other providers, behind the same API, refuse it as well
	p.BoundReasoning = p.BoundReasoning && (m.BindsThinking || m.Source == "")
	return p
}

// limit is the largest request that the model takes, answer included, in tokens.
func limit(m token.Model) int {
	if m.MaxInput > 0 && m.MaxInput < m.Window {
		return m.MaxInput
	}
	return m.Window
}

// output is the room that is kept free for the answer: what the request asks
// for, else enough for a long one, and never more than a third of the window. It is
// less where system and tools are so large that less than a third of the window
// would be left for the conversation: agents ask for the longest answer that any
// model gives, and a conversation without room cannot be compacted.
func output(m token.Model, p *prompt.Prompt) int {
	asked := p.MaxOutput
	if asked == 0 {
		asked = usualOutput
		if m.MaxOutput > 0 && m.MaxOutput < asked {
			asked = m.MaxOutput
		}
	}
	left := m.Window - fixed(p) - m.Window/3
	return min(asked, m.Window/3, max(left, m.Window/8))
}

// usualOutput is the room for an answer of a request that names no limit, in
// tokens.
const usualOutput = 16_000

// fixed is about what system and tools take, in tokens of three bytes.
func fixed(p *prompt.Prompt) int {
	bytes := 0
	for i := range p.System {
		bytes += len(p.System[i].Text)
	}
	for i := range p.Tools {
		bytes += len(p.Tools[i].Name) + len(p.Tools[i].Description) + len(p.Tools[i].Schema)
	}
	return bytes / leastBytes
}

// overflowed makes a smaller request of one that the provider refused as too
// long.
func (x *exchange) overflowed(ctx context.Context, d decision) (decision, error) {
	if d.step != nil {
		return x.harder(ctx, d.step)
	}
	r := d.read
	if r == nil {
		read, reason, err := x.read(ctx)
		if err != nil || read == nil {
			return pass(reason), err
		}
		r = read
	}
	switch r.kind {
	case identify.Step:
	case identify.OwnCompaction:
		r = r.toSummarize()
	default:
		return decision{action: Passed, reason: string(r.kind), read: r}, nil
	}
	d, err := x.prepare(ctx, r, true)
	if d.action != Passed && err == nil {
		d.action = Recovered
	}
	return d, err
}

// harder compacts more than the last time.
func (x *exchange) harder(ctx context.Context, s *step) (decision, error) {
	made, err := s.session.Overflowed(ctx, s.prepared)
	if errors.Is(err, palimpsest.ErrNoRoom) {
		return decision{action: Passed, reason: "no-room", read: s.read, step: s}, nil
	}
	if err != nil {
		return decision{step: s}, err
	}
	d, err := x.finish(ctx, s, made, false)
	if d.action != Passed {
		d.action = Recovered
	}
	return d, err
}

// finish encodes what was rendered. A rendering without a plan is the client's
// own request, unless changed says that the log holds what the client does not.
func (x *exchange) finish(ctx context.Context, s *step, made *palimpsest.Prepared, changed bool) (decision, error) {
	next := *s
	next.prepared = made
	d := decision{action: Planned, read: s.read, step: &next, before: made.Before, sent: made.Tokens}
	current, _, err := store.CurrentUncopied(ctx, x.t.plans, s.id, permit.Key{})
	if err != nil {
		return d, err
	}
	if made.Compacted != nil {
		x.t.compactions.Add(1)
		d.action = Compacted
	} else if x.compacting(ctx, s.id) {
		d.reason = compacting
	}
	if current.Empty() && !changed && !x.native.strict() && (len(s.earlier) == 0 || !x.offers(s.read)) {
		d.action, d.reason = Passed, cmp.Or(d.reason, "below-mark")
		return d, nil
	}
	log, err := x.t.log.Load(ctx, s.id)
	if err != nil {
		return d, err
	}
	rendered := x.native.state.cachedToEnd(refreshed(made.Prompt, log, s.read))
	next.offered = x.offers(s.read) && slices.ContainsFunc(rendered.Tools, isOurDeclaration)
	if d.body, err = x.endpoint.dialect.Encode(rendered); err != nil {
		return d, fmt.Errorf("encode: %w", err)
	}
	return d, nil
}

// offers reports whether the model may be offered our tools: where the client
// offers some, none of them by our names, and where the answer can be read.
func (x *exchange) offers(r *reading) bool {
	tools := r.Prompt.Tools
	return !x.t.options.NoTools && len(tools) > 0 && !slices.ContainsFunc(tools, isOurDeclaration) && x.endpoint.dialect.readable(x.request, r.Members)
}

func isOurDeclaration(t prompt.Tool) bool { return isOurTool(t.Name) }

// isOurTool reports whether a tool of that name is answered here.
func isOurTool(name string) bool { return name == rehydrate.ReadArtifact || name == rehydrate.Recall }

// counted makes of a request to count tokens one about what would be sent. A
// count writes nothing: of a conversation that is not known it is the client's
// own.
func (x *exchange) counted(ctx context.Context) (decision, error) {
	r, reason, err := x.read(ctx)
	if err != nil || r == nil || len(r.IDs) == 0 {
		return pass(cmp.Or(reason, string(identify.Empty))), err
	}
	at, err := identify.Find(r.base, r.Prompt.Messages, r.IDs, x.logs(ctx, r, false))
	if err != nil || at.Of == nil || at.Fork {
		return x.uncompacted(r, err)
	}
	current, _, err := store.CurrentUncopied(ctx, x.t.plans, at.Log, permit.Key{})
	if err != nil || current.Empty() {
		return x.uncompacted(r, err)
	}
	whole, err := at.Of.Append(identify.Detached(r.Prompt.Messages[at.Seen:], r.IDs[at.Seen:])...)
	if err != nil {
		return decision{}, err
	}
	offered := x.offers(r)
	compactor, err := x.t.compactor(r.model, offered)
	if err != nil {
		return decision{}, err
	}
	s := &step{id: at.Log, read: r}
	around, profile := *r.Prompt, x.profile(r.model)
	if offered {
		tools, err := compactor.Session(s.id).Tools(ctx)
		if err != nil {
			return decision{step: s}, err
		}
		around.Tools = append(slices.Clip(around.Tools), tools...)
	} else {
		profile.Reach = render.Nowhere
	}
	res, err := compactor.Render(current, palimpsest.Request{Thread: whole, Base: &around, Profile: profile})
	if err != nil {
		return decision{step: s}, err
	}
	body, err := x.endpoint.dialect.Encode(refreshed(res.Prompt, whole, r))
	if err != nil {
		return decision{step: s}, fmt.Errorf("encode: %w", err)
	}
	return decision{action: Planned, read: r, step: s, body: body, before: res.Before, sent: res.After}, nil
}

// uncompacted counts what nothing was removed from: as the client has it, or the whole
// of a history that the provider would not know.
func (x *exchange) uncompacted(r *reading, err error) (decision, error) {
	if err != nil || !x.native.strict() {
		return pass("count"), err
	}
	body, err := x.endpoint.dialect.Encode(r.Prompt)
	if err != nil {
		return decision{}, fmt.Errorf("encode: %w", err)
	}
	return decision{action: Planned, read: r, body: body}, nil
}
