package palimpsest

import (
	"context"

	"github.com/palimpsest-ai/palimpsest/event"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/injected"
	"github.com/palimpsest-ai/palimpsest/internal/uncopied"
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
	message    thread.ID
	version    int
	contents   []render.Rehydrated
	wasEmitted bool // that it is shown
}

// maxInjected is how many removed messages are shown beside a user's message.
const maxInjected = 3

// inject finds what the plan removed that the user's last message is about
// . The room is what the limit leaves, in tokens; negative where there is none.
func (s *Session) inject(ctx context.Context, l snapshot, situation *policy.Situation, p *plan.Plan, room int) []render.Rehydrated {
	r := s.c.config.Recall
	if r == nil || r.Inject <= 0 || p.Empty() {
		return nil
	}
	var question *thread.Message
	for i := situation.Thread.Len() - 1; i >= 0 && question == nil; i-- {
		if m := uncopied.At(situation.Thread, i); m.StartsTurn() {
			question = m
		}
	}
	if question == nil {
		return nil
	}
	k := &s.state().removedContent
	k.mu.Lock()
	last := k.injected
	k.mu.Unlock()
	if last.message == question.ID && last.version == l.version {
		return last.contents
	}
	query := injected.UserWords(question)
	hits, err := s.search(ctx, situation.Thread, p, l.version, query[:clip.Boundary(query, maxQuery)], recall.Options{Limit: maxInjected})
	if err != nil {
		return nil // as the rest of recall: a search that fails stops nobody
	}
	reserve := r.Inject
	if room >= 0 {
		reserve = min(reserve, room)
	}
	shown := rehydrate.FromHits(hits, situation.Counter.Text, reserve)
	k.mu.Lock()
	k.injected = injection{message: question.ID, version: l.version, contents: shown}
	k.mu.Unlock()
	return shown
}

// maxQuery is how much of a user's message is searched for, in bytes.
const maxQuery = 1000

// emitRecalled tells, once for each message of the user's, what of the removed
// messages that it is about stands in the prompt.
func (s *Session) emitRecalled(ctx context.Context, situation *policy.Situation, shown []render.Rehydrated) {
	k := &s.state().removedContent
	k.mu.Lock()
	known := k.injected.wasEmitted
	k.injected.wasEmitted = known || len(shown) > 0
	k.mu.Unlock()
	if known {
		return
	}
	for _, x := range shown {
		s.emit(ctx, event.Event{Type: event.Rehydrated, TokensAfter: situation.Counter.Text(x.Text()), Details: map[string]any{"trigger": "recall", "message_id": string(x.MessageID)}})
	}
}
