package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// counted makes of a request to count tokens one about what would be sent. A
// count writes nothing: of a conversation that is not known it is the client's
// own.
func (x *exchange) counted(ctx context.Context) (verdict, error) {
	p, reason, err := x.look(ctx)
	if err != nil {
		return verdict{}, err
	}
	if p == nil || len(p.Messages) == 0 {
		return pass(or(reason, "no-messages")), nil
	}
	ids := x.known.ids
	log, rest, err := x.t.peek(ctx, x.base(p, ids), x.scope(p), p.Messages, ids)
	if err != nil || log == nil {
		return pass("count"), err
	}
	current, _, err := store.CurrentUncopied(ctx, x.t.plans, log.ID(), permit.Key{})
	if err != nil || current.Empty() {
		return pass("count"), err
	}
	whole, err := log.Append(fresh(p.Messages[rest:], ids[rest:])...)
	if err != nil {
		return verdict{}, err
	}
	offered := x.offers(p)
	known := x.model(ctx, x.modelNameOf(p))
	compactor, err := x.t.compactor(known, offered)
	if err != nil {
		return verdict{}, err
	}
	s := &step{id: log.ID(), request: p, ids: ids}
	around := *p
	if offered {
		tools, err := compactor.Session(s.id).Tools(ctx)
		if err != nil {
			return verdict{step: s}, err
		}
		around.Tools = append(slices.Clip(p.Tools), tools...)
	}
	profile := x.profile(known)
	if !offered {
		profile.Reach = render.Nowhere
	}
	res, err := compactor.Render(current, palimpsest.Request{Thread: whole, Base: &around, Profile: profile})
	if err != nil {
		return verdict{step: s}, err
	}
	rendered := own(res.Prompt)
	refresh(rendered, whole, p.Messages, ids)
	body, err := x.endpoint.dialect.Encode(rendered)
	if err != nil {
		return verdict{step: s}, fmt.Errorf("encode: %w", err)
	}
	return verdict{action: Planned, step: s, body: body, before: res.Before, sent: res.After}, nil
}

// peek finds the log that a history goes on with, and how much of the history it
// holds, and writes nothing. The log is nil where none is known.
func (t *Transport) peek(ctx context.Context, base, scope string, messages []thread.Message, ids []thread.ID) (*thread.Thread, int, error) {
	id := base
	for n := range maxForks {
		log, err := t.log.Load(ctx, id)
		if err == nil && log.Len() == 0 && n == 0 {
			_, log, err = t.elsewhere(ctx, id, log, scope, messages, ids)
		}
		if err != nil || log.Len() == 0 {
			return nil, 0, err
		}
		where := follow(log, messages, ids)
		if where.fits {
			return log, where.seen, nil
		}
		id = forkID(base, log, where, ids)
	}
	return nil, 0, nil
}
