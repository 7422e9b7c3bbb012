package daemon

import (
	"context"
	"fmt"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// keeper stores what a plan externalizes, before the plan is in force, so that no
// pointer leads nowhere. It implements palimpsest.Keeper.
type keeper struct {
	artifacts *artifact.Store
	tenant    string
}

// Save implements palimpsest.Keeper.
func (k keeper) Save(ctx context.Context, t *thread.Thread, p *plan.Plan) error {
	if k.artifacts == nil {
		return nil
	}
	for _, e := range recall.Removed(t, p) {
		if e.ArtifactID == "" {
			continue
		}
		content, ok := contentOf(t, e)
		if !ok {
			continue // an artifact over several messages: the log has them
		}
		m := artifact.Metadata{ThreadID: t.ID(), TenantID: k.tenant, MessageIDs: []thread.ID{e.MessageID}, Tool: e.Tool, Turn: e.Turn, Sensitivity: artifact.Internal}
		if _, err := k.artifacts.Put(ctx, m, content); err != nil {
			return fmt.Errorf("message %s: %w", e.MessageID, err)
		}
	}
	return nil
}

// contentOf is the text that the plan's pointer means, as its id says: that of
// the message, of its result, or all that it said.
func contentOf(t *thread.Thread, e recall.Entry) (string, bool) {
	at, ok := t.Index(e.MessageID)
	if !ok {
		return "", false
	}
	m := t.At(at)
	texts := []string{e.Text, m.Text()}
	if r, ok := m.Result(); ok {
		texts = append(texts, r.Text())
	}
	for _, text := range texts {
		if artifact.IDOf(t.ID(), text) == e.ArtifactID {
			return text, true
		}
	}
	return "", false
}
