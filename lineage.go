package palimpsest

import (
	"context"
	"errors"
	"slices"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// GoesOn says which threads this one goes on from, the latest first: where an
// agent summed up its own history and began anew with the summary, or shortened
// old results, what the earlier threads hold can still be searched and read with
// the tools of Config.Recall, which are offered from the first prompt on then.
// It holds for the handle; whoever knows says it again after a restart. Without
// Config.Recall it does nothing.
func (t *Thread) GoesOn(from ...string) {
	if t.c.config.Recall == nil {
		return
	}
	t.reach.mu.Lock()
	defer t.reach.mu.Unlock()
	if !slices.Equal(t.reach.earlier, from) {
		t.reach.earlier, t.reach.index = slices.Clone(from), nil
	}
}

// earlier are the threads that this one goes on from.
func (t *Thread) earlier() []fromLog {
	t.reach.mu.Lock()
	defer t.reach.mu.Unlock()
	list := make([]fromLog, len(t.reach.earlier))
	for i, id := range t.reach.earlier {
		list[i] = fromLog{t.c.Thread(id)}
	}
	return list
}

// Artifact implements rehydrate.Artifacts: what the thread itself has, else what
// one of the earlier threads has.
func (f fromLog) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	c, err := f.own(ctx, id)
	for _, e := range f.t.earlier() {
		if !errors.Is(err, artifact.ErrNotFound) {
			return c, err
		}
		if found, failed := e.own(ctx, id); !errors.Is(failed, artifact.ErrNotFound) {
			return found, failed
		}
	}
	return c, err
}

// lost are the messages of earlier threads that the thread does not show, under
// its plan p.
func (t *Thread) lost(ctx context.Context, log *thread.Thread, p *plan.Plan) ([]recall.Entry, error) {
	before := t.earlier()
	if len(before) == 0 {
		return nil, nil
	}
	var actions plan.Actions
	if p != nil {
		actions = p.Actions()
	}
	known := map[string]bool{}
	for _, m := range log.All() {
		if actions[m.ID].Action == plan.Include {
			known[recall.FullText(m)] = true
		}
	}
	var entries []recall.Entry
	for _, e := range before {
		old, err := t.c.config.Log.Load(ctx, e.t.id)
		if err != nil {
			return nil, err
		}
		var gone []thread.ID
		for _, m := range old.All() {
			text := recall.FullText(m)
			if !known[text] {
				known[text] = true
				gone = append(gone, m.ID)
			}
		}
		if len(gone) == 0 {
			continue
		}
		all := plan.Plan{ThreadID: old.ID(), Drops: []plan.Removal{{
			Span: thread.Span{MessageIDs: gone}, Origin: plan.Origin{Reason: "it stood in the conversation before the agent shortened it"},
		}}}
		entries = append(entries, recall.Removed(old, &all)...)
	}
	return entries, nil
}
