package palimpsest

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// saveArtifacts saves what the plan's pointers lead to, so that no plan comes into force
// whose content could not be kept. Pointers of the plan before are kept already.
func (s *Session) saveArtifacts(ctx context.Context, log *thread.Thread, p *plan.Plan) error {
	artifacts := s.c.config.Artifacts
	if artifacts == nil {
		return nil
	}
	who := s.c.config.Requester
	names, err := artifacts.Names(ctx, who.TenantID)
	if err != nil {
		return fmt.Errorf("keep: %w", err)
	}
	for _, externalized := range p.Externalized() {
		found := false
		for _, id := range externalized.Messages {
			i, ok := log.Index(id)
			if !ok {
				continue
			}
			m := uncopied.At(log, i)
			content, ok := recall.FindContent(m, func(content string) bool { return names(externalized.ArtifactID, log.ID(), content) })
			if !ok {
				continue
			}
			meta := artifact.Metadata{
				ID: externalized.ArtifactID, ThreadID: log.ID(), TenantID: who.TenantID, Sensitivity: s.c.config.Sensitivity,
				MessageIDs: []thread.ID{m.ID}, Turn: m.Turn,
			}
			r, _ := m.Result()
			s.describeArtifact(&meta, r.Tool)
			if _, err := artifacts.Put(ctx, meta, content); err != nil {
				return fmt.Errorf("keep message %s: %w", id, err)
			}
			found = true
		}
		if !found {
			// It may have been kept by a store that names contents otherwise, from
			// which this one was imported.
			if _, err := artifacts.Metadata(ctx, who, externalized.ArtifactID); err == nil {
				continue
			}
			return fmt.Errorf("keep %s: no message of its span holds the content that %s names; make the id with artifact.IDOf or the Namer of Config.Artifacts", externalized.Path, externalized.ArtifactID)
		}
	}
	return nil
}

// describeArtifact fills in what the tool that made the content declares about results that
// are externalized.
func (s *Session) describeArtifact(meta *artifact.Metadata, tool string) {
	if meta.Tool = tool; tool == "" {
		return
	}
	p := s.c.config.Tools.Policy(tool)
	meta.Sensitivity = cmp.Or(artifact.Sensitivity(p.Sensitivity), meta.Sensitivity)
	meta.TTLSeconds = int((p.TTL + time.Second - 1) / time.Second)
}
