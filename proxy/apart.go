package proxy

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// summarised decides on a request in which the client has its own history
// summarised. It passes as it is where it fits. Where the conversation is under a
// plan, or the history comes near the window (the client keeps all that we have
// removed, and may not know), it is made smaller like a step, but apart: the
// conversation itself never sees the question.
func (x *exchange) summarised(ctx context.Context, p *prompt.Prompt) (verdict, error) {
	parent, _, err := x.parent(ctx, p)
	if err != nil {
		return verdict{}, err
	}
	planned := false
	if parent != nil {
		current, _, err := store.CurrentUncopied(ctx, x.t.plans, parent.ID(), permit.Key{})
		if err != nil {
			return verdict{}, err
		}
		planned = !current.Empty()
	}
	model := x.model(ctx, x.modelNameOf(p))
	if !planned && (model.Window == 0 || len(x.plain)/leastBytes+output(model, p) < limit(model)) {
		return pass(ownCompaction), nil
	}
	x.apart = true
	return x.prepare(ctx, p, false)
}

// leastBytes is about how many bytes a token has in dense text, code and JSON.
const leastBytes = 3

// parent finds the log of the conversation that a question apart is about, and how
// far they go together; nil where there is none. A client that leaves out its last
// turns, so that its question fits, still asks about the same.
func (x *exchange) parent(ctx context.Context, p *prompt.Prompt) (*thread.Thread, place, error) {
	n := len(p.Messages) - 1
	messages, ids := p.Messages[:n], x.known.ids[:n]
	base := x.base(p, x.known.ids)
	var parent *thread.Thread
	var at place
	for id := base; len(ids) > 0; {
		log, err := x.t.log.Load(ctx, id)
		if err == nil && log.Len() == 0 && parent == nil {
			_, log, err = x.t.elsewhere(ctx, id, log, x.scope(p), messages, ids)
		}
		if err != nil {
			return nil, place{}, err
		}
		where := follow(log, messages, ids)
		if where.seen == 0 || parent != nil && where.seen < at.seen {
			break
		}
		parent, at = log, where
		next := forkID(base, log, where, ids)
		if where.fits || next == id {
			break
		}
		id = next
	}
	return parent, at, nil
}

// branch finds the log that the request goes on with.
func (x *exchange) branch(ctx context.Context, p *prompt.Prompt, ids []thread.ID) (branch, error) {
	base, scope := x.base(p, ids), x.scope(p)
	if !x.apart {
		return x.t.branch(ctx, base, scope, p.Messages, ids)
	}
	id := base + ".s" + short(ids[len(ids)-1])
	log, err := x.t.log.Load(ctx, id)
	if err != nil {
		return branch{}, err
	}
	if log.Len() == 0 {
		parent, where, err := x.parent(ctx, p)
		if err != nil {
			return branch{}, err
		}
		if parent == nil {
			return branch{id: id, news: fresh(p.Messages, ids)}, nil
		}
		if _, err = x.t.fork(ctx, id, parent, where.at); err != nil {
			return branch{}, err
		}
	}
	return x.t.branch(ctx, id, scope, p.Messages, ids)
}
