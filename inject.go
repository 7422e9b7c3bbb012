package palimpsest

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/rehydrate"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// injection is what was recalled for a user's message under one plan. It stays
// the same for all steps of the turn, so that the prompt keeps its prefix.
type injection struct {
	message thread.ID
	version int
	shown   []render.Rehydrated
}

// maxInjected is how many removed messages are shown beside a user's message.
const maxInjected = 3

// inject finds what the plan removed that the user's last message is about
// (A23). The size of the prompt, in tokens, bounds what can be shown beside it.
func (t *Thread) inject(ctx context.Context, s *policy.State, p *plan.Plan, version, size int) []render.Rehydrated {
	r := t.c.config.Recall
	if r == nil || r.Inject <= 0 || p.Empty() {
		return nil
	}
	var asked *thread.Message
	for i := s.Thread.Len() - 1; i >= 0 && asked == nil; i-- {
		if m := s.Thread.At(i); m.StartsTurn() {
			asked = m
		}
	}
	if asked == nil {
		return nil
	}
	t.reach.mu.Lock()
	last := t.reach.injected
	t.reach.mu.Unlock()
	if last.message == asked.ID && last.version == version {
		return last.shown
	}
	query := asked.Text()
	hits, err := t.search(ctx, s.Thread, p, version, query[:clip.Boundary(query, maxQuery)], recall.Options{Limit: maxInjected})
	if err != nil {
		return nil // as the rest of recall: a search that fails stops nobody
	}
	reserve := r.Inject
	if limit := max(s.Budget, s.Window-s.Output); limit > 0 {
		reserve = min(reserve, max(limit-size, 0))
	}
	shown := rehydrate.Recalled(hits, s.Counter.Text, reserve)
	for _, x := range shown {
		t.emit(ctx, event.Event{Type: event.Rehydrated, TokensAfter: s.Counter.Text(x.Text()), Details: map[string]any{"trigger": "recall", "message_id": string(x.MessageID)}})
	}
	t.reach.mu.Lock()
	t.reach.injected = injection{asked.ID, version, shown}
	t.reach.mu.Unlock()
	return shown
}

// maxQuery is how much of a user's message is searched for, in bytes.
const maxQuery = 1000
