package proxy

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/proxy/internal/identify"
	"github.com/palimpsest-ai/palimpsest/render"
)

// decideCount makes a request to count tokens count what would be sent. It writes nothing: an unknown
// conversation is counted as it is.
func (st *stepper) decideCount(ctx context.Context, x *received) (decision, error) {
	r, reason, err := st.parser.parseRequest(ctx, x)
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
