package palimpsest

import (
	"context"
	"errors"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// Artifact implements rehydrate.Artifacts: what the thread itself has, else what
// one of the earlier threads has.
func (f logSource) Artifact(ctx context.Context, id string) (rehydrate.Content, error) {
	c, err := f.ownArtifact(ctx, id)
	for _, earlier := range f.session.earlier {
		if !errors.Is(err, artifact.ErrNotFound) {
			return c, err
		}
		if found, failed := (logSource{session: f.session.c.Session(earlier)}).ownArtifact(ctx, id); !errors.Is(failed, artifact.ErrNotFound) {
			return found, failed
		}
	}
	return c, err
}

// removedEarlier are the messages of earlier threads that the thread does not show, under
// its plan p.
func (s *Session) removedEarlier(ctx context.Context, log *thread.Thread, p *plan.Plan) ([]recall.Entry, error) {
	if len(s.earlier) == 0 {
		return nil, nil
	}
	var actions plan.Actions
	if p != nil {
		actions = p.Actions()
	}
	known := map[string]bool{}
	for _, m := range uncopied.All(log) {
		if actions[m.ID].Action == plan.Include {
			known[recall.FullText(m)] = true
		}
	}
	var entries []recall.Entry
	for _, id := range s.earlier {
		old, err := s.c.config.Log.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		var gone []thread.ID
		for _, m := range uncopied.All(old) {
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
