package palimpsest

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// keep saves what the plan's pointers lead to, so that no plan comes into force
// whose content could not be kept. Pointers of the plan before are kept already.
func (t *Thread) keep(ctx context.Context, log *thread.Thread, p *plan.Plan) error {
	artifacts := t.c.config.Artifacts
	if artifacts == nil {
		return nil
	}
	who := t.c.config.Requester
	for n, r := range p.Externalizations {
		found := false
		for _, id := range r.Span.MessageIDs {
			i, ok := log.Index(id)
			if !ok {
				continue
			}
			m := log.At(i)
			content, ok := recall.Content(log.ID(), m, r.ArtifactID)
			if !ok {
				continue
			}
			meta := artifact.Metadata{
				ThreadID: log.ID(), TenantID: who.TenantID, Sensitivity: t.c.config.Sensitivity, MessageIDs: []thread.ID{id}, Turn: m.Turn,
			}
			if result, ok := m.Result(); ok {
				meta.Tool = result.Tool
			}
			if _, err := artifacts.Put(ctx, meta, content); err != nil {
				return fmt.Errorf("keep message %s: %w", id, err)
			}
			found = true
		}
		if !found {
			return fmt.Errorf("keep externalizations[%d]: no message of its span holds the content that %s names; make the id with artifact.IDOf", n, r.ArtifactID)
		}
	}
	return nil
}
