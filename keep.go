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
	names, err := artifacts.Names(ctx, who.TenantID)
	if err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	for n, r := range p.Externalizations {
		found := false
		for _, id := range r.Span.MessageIDs {
			i, ok := log.Index(id)
			if !ok {
				continue
			}
			m := log.At(i)
			content, ok := recall.Content(m, func(content string) bool { return names(r.ArtifactID, log.ID(), content) })
			if !ok {
				continue
			}
			meta := artifact.Metadata{
				ID: r.ArtifactID, ThreadID: log.ID(), TenantID: who.TenantID, Sensitivity: t.c.config.Sensitivity, MessageIDs: []thread.ID{id}, Turn: m.Turn,
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
			// It may have been kept by a store that names contents otherwise, from
			// which this one was imported.
			if _, err := artifacts.Metadata(ctx, who, r.ArtifactID); err == nil {
				continue
			}
			return fmt.Errorf("keep externalizations[%d]: no message of its span holds the content that %s names; make the id with artifact.IDOf or the Namer of Config.Artifacts", n, r.ArtifactID)
		}
	}
	return nil
}
