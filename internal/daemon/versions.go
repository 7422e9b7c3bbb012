package daemon

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/internal/permit"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// plans are the plans of a tenant as the front door is given them: who watches a
// thread is told of a new one.
type plans struct {
	store.Plans
	hub *hub
}

// Commit implements store.Plans.
func (p plans) Commit(ctx context.Context, threadID string, expected int, c store.Commit) (int, error) {
	version, err := p.Plans.Commit(ctx, threadID, expected, c)
	if err == nil {
		p.hub.wake(threadID)
	}
	return version, err
}

// Itself is what store.CurrentUncopied asks for.
func (p plans) Itself(permit.Key) any { return p }

// CurrentUncopied is what store.CurrentUncopied asks for: a copy would be another plan at
// each step, and be checked and rendered from the beginning of the thread on.
func (p plans) CurrentUncopied(ctx context.Context, id string, key permit.Key) (*plan.Plan, int, error) {
	return store.CurrentUncopied(ctx, p.Plans, id, key)
}

// tied are messages that go behind the log of a thread, with what only the log can
// tell of them; see linked.
func (c *call) tied(id string, messages []thread.Message) ([]thread.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	log, err := c.tenant.Log.Load(c.r.Context(), id)
	if err != nil {
		return nil, err
	}
	first := log.Len()
	if at, known := log.Index(messages[0].ID); known {
		first = at
	}
	if c.op.IfMatch == "version" && c.version != api.Any {
		first = min(c.version, log.Len())
	}
	return linked(log.Prefix(first), messages), nil
}
